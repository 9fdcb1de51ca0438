"""Grafana dashboards as code: ``dashboards.build.files()`` gives the files that people import."""
