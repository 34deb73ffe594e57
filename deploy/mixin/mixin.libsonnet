// A monitoring mixin for `podium exporter`: alerts and a Grafana dashboard.
{
  _config+:: {
    // The address of a runbook; %s stands for the name of the alert in lower case.
    runbookURLPattern: 'https://example.com/podium/exporter.html#%s',
  },

  prometheusAlerts+:: {
    groups: [
      group {
        rules: [
          rule { annotations+: { runbook_url: $._config.runbookURLPattern % std.asciiLower(rule.alert) } }
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
