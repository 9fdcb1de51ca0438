# What pint asks for beside its own checks, which need no more than the rules. Queries are not asked of any server.
parser {
  # A PrometheusRule has the groups further in.
  relaxed = [".*/kubernetes/.*"]
}

rule {
  match { kind = "alerting" }

  label "severity" {
    severity = "bug"
    required = true
    value    = "critical|warning|info"
  }
  label "component" {
    severity = "bug"
    required = true
    value    = "agent_otel"
  }
  annotation "summary" {
    severity = "bug"
    required = true
  }
  annotation "description" {
    severity = "bug"
    required = true
  }
  annotation "dashboard" {
    severity = "bug"
    required = true
    value    = "/d/agent-otel-.+"
  }
  annotation "runbook_url" {
    severity = "bug"
    required = true
    value    = "alerts/runbooks/Agent.+[.]md"
  }
}

# Rules of alerts are the only ones that say for how long.
rule {
  match { kind = "alerting" }

  for {
    severity = "bug"
    max      = "1h"
  }
  keep_firing_for {
    severity = "bug"
    max      = "1h"
  }
}

rule {
  # Who is told has to know of which job; and a rule that drops it works on one job alone.
  aggregate ".+" {
    severity = "bug"
    keep     = ["job"]
  }
  name "(agent_otel:[a-z_]+:[a-z0-9_]+|Agent[A-Z][A-Za-z]+)" {
    severity = "bug"
  }
}
