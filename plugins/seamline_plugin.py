"""What Airflow's pages get from Seamline; nothing is computed here."""

from airflow.plugins_manager import AirflowPlugin


class SeamlinePlugin(AirflowPlugin):
    """Makes the plugin folder known; pages and links register here."""

    name = "seamline"
