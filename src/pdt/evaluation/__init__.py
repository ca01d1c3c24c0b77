"""The evaluation protocol: conditions, screens, measures, gates, reports. Paper: §7."""
