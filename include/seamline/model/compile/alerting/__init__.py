"""Routes of alerts: what they may say."""
