// A monitoring mixin for `podium exporter`: alerts and a Grafana dashboard.
{
  _config+:: {
    // What the names of the runbooks follow.
    runbookURLPrefix: 'docs/exporter.md#',
  },

  prometheusAlerts+:: {
    groups: [
      group {
        rules: [
          rule { annotations+: { runbook_url: $._config.runbookURLPrefix + std.asciiLower(rule.alert) } }
          for rule in group.rules
        ],
      }
      for group in std.parseYaml(importstr 'alerts.yaml').groups
    ],
  },

  grafanaDashboards+:: {
    'podium-exporter.json': import 'dashboard.json',
  },
}
