"""The rows of the table of integrations that are durable runtimes. Strings only; read at interpreter start."""

from __future__ import annotations

from agent_otel.integrations.registry.entries import Candidate, Integration, Wrap

_RUNTIMES = "agent_otel.integrations.runtimes."
_DBOS_TESTED = "2.0 and 3.4, SQLite"
_CELERY_TESTED = "5.7, memory broker"
_INNGEST_TESTED = "0.5, its own handler over HTTP, called as the server calls it"
_PREFECT_TESTED = "3.8, its own server"
_TEMPORAL_TESTED = "1.20, 1.28 and 1.35, the real server"

RUNTIMES = (
    Integration(
        "temporal",
        "temporalio",
        "1.20",
        _RUNTIMES + "temporal",
        Candidate(
            "temporalio.worker._activity",
            Wrap("_ActivityWorker._handle_start_activity_task", "activity"),
            Wrap("_ActivityInboundImpl.execute_activity", "handler"),
        ),
        tested=_TEMPORAL_TESTED,
    ),
    Integration(
        "temporal-workflow",
        "temporalio",
        "1.20",
        _RUNTIMES + "temporal",
        Candidate(
            "temporalio.worker._workflow",
            Wrap("_WorkflowWorker._handle_activation", "activating"),
            Wrap("_WorkflowWorker.__init__", "workflow_worker"),
            Wrap("_RunningWorkflow.activate", "workflow_code"),
        ),
        tested=_TEMPORAL_TESTED,
    ),
    # The encoded payloads that both send to the SDK's core.
    Integration(
        "temporal-core",
        "temporalio",
        "1.20",
        _RUNTIMES + "temporal",
        Candidate(
            "temporalio.bridge.worker",
            Wrap("Worker.complete_activity_task", "completing_activity"),
            Wrap("Worker.complete_workflow_activation", "completing_workflow"),
            Wrap("Worker.validate", "validated"),
            Wrap("encode_completion", "encoded"),
        ),
        tested=_TEMPORAL_TESTED,
    ),
    Integration(
        "durabletask",
        "durabletask",
        "1.5",
        _RUNTIMES + "durabletask",
        Candidate(
            "durabletask.worker",
            Wrap("_ActivityExecutor.execute", "activity"),
            Wrap("_OrchestrationExecutor.execute", "orchestrator"),
            Wrap("stubs.TaskHubSidecarServiceStub.__init__", "stub"),
            Wrap("TaskHubGrpcWorker.__init__", "worker"),
            # Which durabletask-dapr has not: up to Dapr 1.17 a module of the same name.
            Wrap("payload_helpers.externalize_payloads", "externalized"),
        ),
        tested="1.5 to 1.12, its in-memory backend",
    ),
    Integration(
        "dbos",
        "dbos",
        "2.0",
        _RUNTIMES + "dbos",
        Candidate(  # 3.1 and later
            "dbos._sys_db",
            Wrap("SystemDatabase.record_operation_result", "recorded"),
            Wrap("SystemDatabase.check_operation_execution", "asked"),
            Wrap("SystemDatabase.init_workflow", "started"),
            Wrap("SystemDatabase.init_child_workflow", "started"),
            Wrap("SystemDatabase.update_workflow_outcome", "ended"),
        ),
        Candidate(
            "dbos._sys_db",
            Wrap("SystemDatabase.record_operation_result", "recorded"),
            Wrap("SystemDatabase.check_operation_execution", "asked"),
            Wrap("SystemDatabase.init_workflow", "started"),
            Wrap("SystemDatabase.update_workflow_outcome", "ended"),
        ),
        tested=_DBOS_TESTED,
    ),
    Integration(
        "dbos-steps",
        "dbos",
        "2.0",
        _RUNTIMES + "dbos",
        Candidate(
            "dbos._outcome",
            Wrap("Immediate._intercept", "step"),
            Wrap("Pending._wrap", "asynchronous_step"),
        ),
        tested=_DBOS_TESTED,
    ),
    # The names of steps, and the workflows that are not new.
    Integration(
        "dbos-workflows",
        "dbos",
        "2.0",
        _RUNTIMES + "dbos",
        Candidate(  # 3.0 and later
            "dbos._core",
            Wrap("EnterDBOSStepCtx.__enter__", "entered"),
            Wrap("execute_dequeued_workflow", "dequeued"),
        ),
        Candidate(
            "dbos._core",
            Wrap("EnterDBOSStepCtx.__enter__", "entered"),
            Wrap("execute_workflow_by_id", "resumes"),
        ),
        Candidate(  # up to 2.9
            "dbos._core",
            Wrap("EnterDBOSStep.__enter__", "entered"),
            Wrap("execute_workflow_by_id", "resumes"),
        ),
        tested=_DBOS_TESTED,
    ),
    Integration(
        "restate",
        "restate-sdk",
        "1.0",
        _RUNTIMES + "restate",
        Candidate(
            "restate.server_context",
            Wrap("ServerInvocationContext.create_run_coroutine", "run"),
            Wrap("ServerInvocationContext.enter", "invocation"),
            Wrap("invoke_handler", "handler"),
            Wrap("VMWrapper.sys_run", "registered"),
            Wrap("VMWrapper.propose_run_completion_success", "success"),
            Wrap("VMWrapper.propose_run_completion_failure", "failure"),
            Wrap("VMWrapper.propose_run_completion_transient", "failure"),
            Wrap("VMWrapper.propose_run_completion_transient_with_delay_override", "failure"),
            Wrap("VMWrapper.sys_set_state", "state"),
        ),
        tested="1.3, the server 1.7.12",
    ),
    # Up to 1.18 the worker is in a distribution of its own, dapr-ext-workflow, of the same version.
    Integration(
        "dapr",
        "dapr",
        "1.18",
        _RUNTIMES + "dapr",
        Candidate(
            "dapr.ext.workflow._durabletask.worker",
            Wrap("_ActivityExecutor.execute", "activity"),
            Wrap("_ActivityExecutor.execute_async", "activity"),
            Wrap("_OrchestrationExecutor.execute", "workflow"),
            Wrap("stubs.TaskHubSidecarServiceStub.__init__", "stub"),
        ),
        tested="1.18 and 1.19, the SDK's worker against a stand-in for daprd",
    ),
    Integration(
        "dapr-agents-state",
        "dapr-agents",
        "1.0",
        _RUNTIMES + "dapr_agents",
        Candidate("dapr_agents.storage.daprstores.statestore", Wrap("DaprStateStore.save_state", "saved")),
        tested="1.0.9, the agent against a stand-in for daprd",
    ),
    Integration(
        "langgraph-savers",
        "langgraph-checkpoint",
        "2.0.10",
        _RUNTIMES + "langgraph",
        Candidate("langgraph.checkpoint.base", Wrap("BaseCheckpointSaver.__init__", "savers")),
        tested="2.1 to 4.3: memory, SQLite, PostgreSQL",
    ),
    # The values that PostgreSQL's savers put into a column of its own instead of giving them to the serializer.
    Integration(
        "langgraph-postgres",
        "langgraph-checkpoint-postgres",
        "2.0",
        _RUNTIMES + "langgraph",
        Candidate("langgraph.checkpoint.postgres.base", Wrap("Jsonb.__init__", "inlined")),
        tested="2.0 to 3.2",
    ),
    Integration(
        "langgraph-graphs",
        "langgraph",
        "0.2.76",
        _RUNTIMES + "langgraph",
        Candidate("langgraph.pregel.main", Wrap("Pregel.stream", "running"), Wrap("Pregel.astream", "running")),
        Candidate("langgraph.pregel", Wrap("Pregel.stream", "running"), Wrap("Pregel.astream", "running")),  # up to 0.4
        tested="0.2.76 to 1.2",
    ),
    # Which node a task is of.
    Integration(
        "langgraph-tasks",
        "langgraph",
        "0.2.76",
        _RUNTIMES + "langgraph",
        Candidate("langgraph.pregel._loop", Wrap("PregelLoop.put_writes", "writing")),
        Candidate("langgraph.pregel.loop", Wrap("PregelLoop.put_writes", "writing")),  # up to 0.4
        tested="0.2.76 to 1.2",
    ),
    # Its plug-in is an entry point of the SDK's own, too.
    Integration(
        "aws-durable",
        "aws-durable-execution-sdk-python",
        "3.0",
        _RUNTIMES + "aws_durable",
        Candidate(
            "aws_durable_execution_sdk_python.execution",
            Wrap("load_configured_plugins", "collected"),
            Wrap("DurableContext.from_lambda_context", "invocation"),
            Wrap("ExecutionState.create_checkpoint", "checkpoint"),
        ),
        tested="3.0, its in-process runner",
    ),
    Integration(
        "celery",
        "celery",
        "5.3",
        _RUNTIMES + "celery",
        Candidate("celery.app.trace", Wrap("build_tracer", "tracer")),
        tested=_CELERY_TESTED,
    ),
    Integration(
        "celery-loader",
        "celery",
        "5.3",
        _RUNTIMES + "celery",
        Candidate("celery.loaders.base", Wrap("BaseLoader.on_task_init", "starting")),
        tested=_CELERY_TESTED,
    ),
    Integration(
        "celery-results",
        "celery",
        "5.3",
        _RUNTIMES + "celery",
        Candidate("celery.backends.base", Wrap("Backend.encode", "encoded")),
        tested=_CELERY_TESTED,
    ),
    # The library under it, with its messages; they are passed over unless they are Celery's.
    Integration(
        "celery-arguments",
        "celery",
        "5.3",
        _RUNTIMES + "celery",
        Candidate("kombu.serialization", Wrap("loads", "decoded")),
        tested=_CELERY_TESTED,
    ),
    Integration(
        "celery-messages",
        "celery",
        "5.3",
        _RUNTIMES + "celery",
        Candidate("kombu.messaging", Wrap("Producer._prepare", "encoded"), Wrap("Producer._publish", "published")),
        tested=_CELERY_TESTED,
    ),
    Integration(
        "inngest",
        "inngest",
        "0.5",
        _RUNTIMES + "inngest",
        Candidate(
            "inngest._internal.execution_lib.v0",
            Wrap("ExecutionV0.report_step", "reported"),
            Wrap("ExecutionV0Sync.report_step", "reported"),
            Wrap("ReportedStep.__aexit__", "ended"),
            Wrap("ReportedStepSync.__exit__", "ended"),
        ),
        tested=_INNGEST_TESTED,
    ),
    Integration(
        "inngest-functions",
        "inngest",
        "0.5",
        _RUNTIMES + "inngest",
        Candidate("inngest._internal.function", Wrap("Function.call", "call"), Wrap("Function.call_sync", "call")),
        tested=_INNGEST_TESTED,
    ),
    # The request that calls one, and the answer.
    Integration(
        "inngest-requests",
        "inngest",
        "0.5",
        _RUNTIMES + "inngest",
        Candidate(
            "inngest._internal.comm_lib.models",
            Wrap("_prep_call_result", "preparing"),
            Wrap("transforms.dump_json", "serialised"),
            Wrap("server_lib.ServerRequest.from_raw", "received"),
        ),
        tested=_INNGEST_TESTED,
    ),
    Integration(
        "prefect",
        "prefect",
        "3.8",
        _RUNTIMES + "prefect",
        Candidate(
            "prefect.task_engine",
            Wrap("SyncTaskRunEngine.call_task_fn", "task"),
            Wrap("AsyncTaskRunEngine.call_task_fn", "task"),
        ),
        tested=_PREFECT_TESTED,
    ),
    Integration(
        "prefect-flows",
        "prefect",
        "3.8",
        _RUNTIMES + "prefect",
        Candidate(
            "prefect.flow_engine",
            Wrap("FlowRunEngine.call_flow_fn", "flow"),
            Wrap("AsyncFlowRunEngine.call_flow_fn", "flow"),
            Wrap("FlowRunEngine.handle_success", "flow_success"),
            Wrap("AsyncFlowRunEngine.handle_success", "flow_success"),
        ),
        tested=_PREFECT_TESTED,
    ),
    Integration(
        "prefect-results",
        "prefect",
        "3.8",
        _RUNTIMES + "prefect",
        Candidate(
            "prefect.results",
            Wrap("ResultRecord.serialize", "serialised"),
            Wrap("ResultRecord.serialize_result", "serialised"),
            Wrap("ResultStore._persist_result_record", "storing"),
            Wrap("ResultStore._apersist_result_record", "storing"),
        ),
        tested=_PREFECT_TESTED,
    ),
    # The refusals of the server.
    Integration(
        "prefect-client",
        "prefect",
        "3.8",
        _RUNTIMES + "prefect",
        Candidate(
            "prefect.client.orchestration._flow_runs.client",
            Wrap("FlowRunClient.create_flow_run", "created"),
            Wrap("FlowRunAsyncClient.create_flow_run", "created"),
        ),
        tested=_PREFECT_TESTED,
    ),
    Integration(
        "hatchet",
        "hatchet-sdk",
        "1.43",
        _RUNTIMES + "hatchet",
        Candidate(
            "hatchet_sdk.worker.runner.runner",
            Wrap("Runner.handle_start_step_run", "step_run"),
            Wrap("Runner.serialize_output", "serialised"),
            Wrap("Task.call", "task"),
            Wrap("Task.aio_call", "task"),
        ),
        tested="1.43, its worker's runner without an engine",
    ),
)
