"""A broker that lets in only who may: by password over TLS, or by certificate, each with rights of its own."""

from __future__ import annotations

from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePattern,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from tests.faults.rig.certificates import Authority
from tests.faults.rig.token_issuer import AUDIENCE, ISSUER, SECRET, Issuer
from tests.services.broker import TiedBroker

from seamline.kafka.connections import KafkaConnection
from seamline.kafka.token_endpoint import TokenEndpoint

SECURITY = """\
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port},\
SASL_SSL://127.0.0.1:{sasl},SSL://127.0.0.1:{tls}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SASL_SSL://127.0.0.1:{sasl},SSL://127.0.0.1:{tls}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL
inter.broker.listener.name=PLAINTEXT
sasl.enabled.mechanisms={mechanisms}
listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config={scram} required;
listener.name.sasl_ssl.plain.sasl.jaas.config={plain} required user_reader="{password}";
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
ssl.truststore.type=PEM
ssl.truststore.location={truststore}
ssl.principal.mapping.rules=RULE:^CN=(.*?)$/$1/
listener.name.ssl.ssl.client.auth=required
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=false
"""
BY_TOKEN = """\
listener.name.sasl_ssl.oauthbearer.sasl.jaas.config={module} required \
unsecuredLoginStringClaim_sub="broker" ssl.truststore.type="PEM" ssl.truststore.location="{truststore}";
listener.name.sasl_ssl.oauthbearer.sasl.server.callback.handler.class={handler}
sasl.oauthbearer.jwks.endpoint.url={keys}
sasl.oauthbearer.expected.audience={audience}
sasl.oauthbearer.expected.issuer={issuer}
sasl.oauthbearer.jwt.validator.class={validator}
sasl.oauthbearer.clock.skew.seconds=0
listener.name.sasl_ssl.oauthbearer.connections.max.reauth.ms=3600000
"""
PASSWORDS = "SCRAM-SHA-256,SCRAM-SHA-512,PLAIN"
MODULES = "org.apache.kafka.common.security"
PASSWORD = "of this test alone"


class SecuredBroker(TiedBroker):
    """One broker with a door of each kind; whoever comes by the plain one may do everything."""

    def __init__(
        self,
        home: Path,
        ports: list[int],
        certificate: Path,
        authority: Authority,
        issuer: Issuer | None = None,
        truststore: Path | None = None,
        more: str = "",
    ) -> None:
        port, controller, self.sasl, self.tls = ports
        super().__init__(home, port, controller)
        self.certificate, self.authority, self.issuer, self.more = certificate, authority, issuer, more
        self.truststore = truststore or authority.file

    def format_settings(self) -> str:
        """Add the doors, and what is behind them."""
        replaced = ("listeners=", "advertised.listeners=", "listener.security.protocol.map=")
        lines = [line for line in super().format_settings().splitlines() if not line.startswith(replaced)]
        doors = SECURITY.format(
            port=self.port,
            controller_port=self.controller_port,
            sasl=self.sasl,
            tls=self.tls,
            scram=f"{MODULES}.scram.ScramLoginModule",
            plain=f"{MODULES}.plain.PlainLoginModule",
            mechanisms=f"{PASSWORDS},OAUTHBEARER" if self.issuer else PASSWORDS,
            password=PASSWORD,
            keystore=self.certificate,
            truststore=self.truststore,
        )
        if self.issuer:
            doors += BY_TOKEN.format(
                module=f"{MODULES}.oauthbearer.OAuthBearerLoginModule",
                handler=f"{MODULES}.oauthbearer.OAuthBearerValidatorCallbackHandler",
                truststore=self.authority.file,
                # The default of Kafka 4.1.0 looks at no signature.
                validator=f"{MODULES}.oauthbearer.BrokerJwtValidator",
                keys=self.issuer.keys,
                audience=AUDIENCE,
                issuer=ISSUER,
            )
        return "\n".join([*lines, doors, self.more])

    def _command(self, main_class: str, heap: str) -> list[str]:
        command = super()._command(main_class, heap)
        if self.issuer:
            # Kafka 4 asks nobody for keys who is not named here.
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.issuer.keys}"
            command.insert(command.index("-cp"), allowed)
        return command

    def login(self, mechanism: str = "SCRAM-SHA-512", **changed: object) -> KafkaConnection:
        """Return how ``reader`` comes in by password."""
        parts = {
            "brokers": f"127.0.0.1:{self.sasl}",
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": mechanism,
            "username": "reader",
            "password": PASSWORD,
            "ca_file": str(self.authority.file),
        }
        return KafkaConnection(**{**parts, **changed})  # type: ignore[arg-type]

    def tokened(self, issuer: Issuer, client: str = "service", secret: str = SECRET) -> KafkaConnection:
        """Return how a client comes in by tokens."""
        endpoint = TokenEndpoint(issuer.tokens, ca_file=str(self.authority.file))
        return self.login("OAUTHBEARER", username=client, password=secret, tokens=endpoint)

    def certified(self, certificate: Path) -> KafkaConnection:
        """Return how somebody comes in by a certificate."""
        return KafkaConnection(
            brokers=f"127.0.0.1:{self.tls}",
            security_protocol="SSL",
            ca_file=str(self.authority.file),
            cert_file=str(certificate),
            key_file=str(certificate),
        )

    def reload(self) -> None:
        """Let it read its certificates and authorities again, as it runs."""
        files = {"keystore": self.certificate, "truststore": self.truststore}
        settings = {
            f"listener.name.{door}.ssl.{kind}.location": str(file)
            for door in ("ssl", "sasl_ssl")
            for kind, file in files.items()
        }
        client = KafkaAdminClient(bootstrap_servers=self.connection.brokers)
        change = ConfigResource(ConfigResourceType.BROKER, "1", settings)
        # Settings of one listener are not among those that a broker lists.
        client.alter_configs([change], raise_on_unknown=False)
        client.close()

    def set_password(self, password: str, user: str = "reader") -> None:
        """Set the password that a user has by SCRAM."""
        client = KafkaAdminClient(bootstrap_servers=self.connection.brokers)
        # A request has one of a user's passwords at most, and what is wrong with it is in the answer.
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
            change = UserScramCredentialUpsertion(user, mechanism, password)
            assert client.alter_user_scram_credentials([change]) == {user: None}
        client.close()

    def allow(self, kind: ResourceType, name: str, *operations: ACLOperation, user: str = "reader") -> None:
        """Allow a user what is named of a resource; a name that ends in * is a prefix."""
        pattern = ACLResourcePatternType.PREFIXED if name.endswith("*") else ACLResourcePatternType.LITERAL
        resource = ResourcePattern(kind, name.removesuffix("*"), pattern)
        client = KafkaAdminClient(bootstrap_servers=self.connection.brokers)
        client.create_acls(
            [ACL(f"User:{user}", "*", each, ACLPermissionType.ALLOW, resource) for each in operations]
        )
        client.close()
