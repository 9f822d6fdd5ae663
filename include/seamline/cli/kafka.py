"""Commands about topics."""

from __future__ import annotations

import click


@click.group()
@click.option(
    "--connection", default="kafka_default", show_default=True, help="Name of the Kafka connection."
)
@click.pass_context
def topics(context: click.Context, connection: str) -> None:
    """Create, delete, list topics, and show their offsets."""
    context.obj = connection


@topics.command("list")
@click.pass_obj
def list_(connection: str) -> None:
    """List the topics."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import read_airflow_connection

    with TopicAdmin(read_airflow_connection(connection)) as admin:
        for name in admin.topics():
            click.echo(f"{name}  {len(admin.partitions(name))} partitions  {admin.topic_id(name)}")


@topics.command()
@click.argument("topic")
@click.option("--partitions", type=click.IntRange(min=1), default=4, show_default=True)
@click.option(
    "--config",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="A setting of the topic, such as cleanup.policy=compact; may be repeated.",
)
@click.pass_obj
def create(connection: str, topic: str, partitions: int, settings: tuple[str, ...]) -> None:
    """Create a topic; does nothing if it exists."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import read_airflow_connection

    pairs = [each.partition("=")[::2] for each in settings]
    if wrong := [name for name, value in pairs if not (name and value)]:
        raise click.UsageError(f"--config {wrong[0]}: a setting is written NAME=VALUE.")
    with TopicAdmin(read_airflow_connection(connection)) as admin:
        made = admin.create_topic(topic, partitions, config=dict(pairs))
    click.echo(f"{topic}: {'created' if made else 'was there already'}.")


@topics.command()
@click.argument("topic")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.pass_obj
def delete(connection: str, topic: str, yes: bool) -> None:
    """Delete a topic and everything in it."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import read_airflow_connection

    if not yes:
        click.confirm(f"Delete topic {topic} and every record in it?", abort=True)
    with TopicAdmin(read_airflow_connection(connection)) as admin:
        admin.delete_topic(topic)
    click.echo(f"{topic}: deleted.")


@topics.command()
@click.argument("topic")
@click.pass_obj
def offsets(connection: str, topic: str) -> None:
    """Show the first and the end offset of each partition."""
    from seamline.kafka.admin import TopicAdmin
    from seamline.kafka.connections import read_airflow_connection

    with TopicAdmin(read_airflow_connection(connection)) as admin:
        first, end = admin.beginning_offsets(topic), admin.end_offsets(topic)
        click.echo(f"{topic}  {admin.topic_id(topic)}")
    for partition in sorted(end):
        count = end[partition] - first[partition]
        click.echo(f"  {partition}: {first[partition]} .. {end[partition]} ({count} offsets)")


COMMANDS = (topics,)
