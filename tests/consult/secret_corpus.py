"""Texts with and without credentials. Every credential is made up at run time; see `secret_maker`."""

from __future__ import annotations

import base64
import re
import string
import tomllib
from pathlib import Path

from consult.secret_maker import BASE64, HEX, URLSAFE, WORD, FalseCase, Maker, TrueCase, pem


def true_cases(seed: int = 11) -> list[TrueCase]:
    """Credentials where they are met: code, configuration, logs, shell, prose, patches."""
    make = Maker(seed)
    cases: list[TrueCase] = []

    def add(name: str, template: str, secret: str) -> None:
        assert template.count("@@") == 1, name
        cases.append(TrueCase(name, template.replace("@@", secret), secret))

    upper = string.ascii_uppercase + "234567"
    # What issuers' tokens look like, each in a place of its own.
    add(
        "aws id in python", 'client = boto3.client("s3", aws_access_key_id="@@")', "AKIA" + make.of(upper, 16)
    )
    add("aws id in prose", "the job runs with @@, please rotate it", "AKIA" + make.of(upper, 16))
    add("aws session id in env", "AWS_ACCESS_KEY_ID=@@", "ASIA" + make.of(upper, 16))
    add("aws secret in env", "AWS_SECRET_ACCESS_KEY=@@", make.of(BASE64, 40))
    add("aws secret in ini", "[default]\naws_secret_access_key = @@\nregion = eu-west-1", make.of(BASE64, 40))
    add("aws secret in patch", '@\n-secret_key = ""\n+aws_secret_key = "@@"', make.of(BASE64, 40))
    add(
        "github classic",
        "git clone https://@@@github.com/acme/site.git".replace("@@@", "@@:x@"),
        "ghp_" + make.of(WORD, 36),
    )
    add("github fine-grained", "export GH=@@", f"github_pat_{make.of(WORD, 22)}_{make.of(WORD, 59)}")
    add("github app in yaml", "env:\n  GITHUB_AUTH: @@", "ghs_" + make.of(WORD, 36))
    add(
        "gitlab",
        "curl --header 'PRIVATE-TOKEN: @@' https://git.acme.test/api",
        "glpat-" + make.of(URLSAFE, 20),
    )
    add("anthropic", 'Anthropic(api_key="@@")', "sk-ant-api03-" + make.of(URLSAFE, 93) + "AA")
    add("openai project", "OPENAI=@@", "sk-proj-" + make.of(WORD, 48))
    add("openai old", "const openai = new OpenAI({ apiKey: '@@' })", "sk-" + make.of(WORD, 48))
    add("openrouter", "key is @@ for now", "sk-or-v1-" + make.of(HEX, 64))
    add("google api", "https://maps.googleapis.com/maps/api/js?key=@@&v=3", "AIza" + make.of(WORD, 35))
    add("google oauth secret", '{"web":{"client_secret":"@@"}}', "GOCSPX-" + make.of(URLSAFE, 28))
    add("google access token", "Authorization: Bearer @@", "ya29." + make.of(URLSAFE, 90))
    add("hugging face", "login(token='@@')", "hf_" + make.of(string.ascii_letters, 34))
    add(
        "slack bot",
        "SLACK: @@",
        f"xoxb-{make.of(string.digits, 12)}-{make.of(string.digits, 12)}-{make.of(WORD, 24)}",
    )
    add(
        "slack webhook",
        "curl -X POST https://hooks.slack.com/services/@@",
        f"T{make.of(upper, 8)}/B{make.of(upper, 8)}/{make.of(WORD, 24)}",
    )
    add("discord webhook", "url: https://discord.com/api/webhooks/112233445566778899/@@", make.of(WORD, 68))
    add("stripe live", "Stripe.api_key = '@@'", "sk_live_" + make.of(WORD, 24))
    add("stripe restricted in log", "charging with @@ failed: 402", "rk_live_" + make.of(WORD, 24))
    add("stripe webhook", "endpoint_secret = '@@'", "whsec_" + make.of(WORD, 32))
    add("twilio", "TWILIO_KEY = '@@'", "SK" + make.of(HEX, 32))
    add("sendgrid", "SENDGRID=@@", f"SG.{make.of(URLSAFE, 22)}.{make.of(URLSAFE, 43)}")
    add("npm", "//registry.example.org/:_authToken=@@", "npm_" + make.of(WORD, 36))
    add("npm private registry", "//npm.acme.test/:_authToken=@@", make.uuid())
    add("pypi", "[pypi]\nusername = __token__\npassword = @@", "pypi-AgEIcHlwaS5vcmc" + make.of(URLSAFE, 120))
    add("digitalocean", "doctl auth init -t @@", "dop_v1_" + make.of(HEX, 64))
    add("shopify", "X-Shopify-Access-Token: @@", "shpat_" + make.of(HEX, 32))
    add("databricks", "databricks configure --token @@", "dapi" + make.of(HEX, 32))
    add("vault", "vault login @@", "hvs." + make.of(URLSAFE, 90))
    add(
        "atlassian",
        "curl -u me@acme.test:@@ https://acme.atlassian.net",
        "ATATT3xFfGF0" + make.of(URLSAFE, 160),
    )
    add(
        "azure client secret",
        'ClientSecretCredential(tenant, client, "@@")',
        f"{make.of(WORD, 3)}8Q~{make.of(WORD, 34)}",
    )
    add(
        "azure storage",
        "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=@@;EndpointSuffix=core",
        make.of(BASE64, 86) + "==",
    )
    add(
        "azure sas",
        "https://acme.blob.core.windows.net/c/f?sv=2022-11-02&sr=b&sig=@@",
        make.of(WORD, 43) + "%3D",
    )
    add("telegram", "bot = Bot('@@')", f"{make.of(string.digits, 10)}:AA{make.of(URLSAFE, 33)}")
    add(
        "docker config",
        '{"auths":{"r.acme.test":{"auth":"@@"}}}',
        base64.b64encode(f"ci:{make.of(WORD, 20)}".encode()).decode(),
    )
    add("jwt in curl", "curl -H 'Authorization: Bearer @@' https://api.acme.test", make.jwt())
    add("jwt in log", "session opened, id_token=@@ for user 7", make.jwt())
    add("age key", "@@", "AGE-SECRET-KEY-1" + make.of("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58))
    add("new relic", "license: @@", "NRAK-" + make.of(string.ascii_uppercase + string.digits, 27))
    add("linear", "LINEAR=@@", "lin_api_" + make.of(WORD, 40))
    add("groq", "GROQ=@@", "gsk_" + make.of(WORD, 52))
    add("replicate", "client = Replicate(@@)", "r8_" + make.of(WORD, 37))
    add("tailscale", "tailscale up --authkey @@", f"tskey-auth-{make.of(WORD, 17)}-{make.of(WORD, 32)}")
    add("figma", "figma: @@", "figd_" + make.of(URLSAFE, 40))
    add("pulumi", "PULUMI=@@", "pul-" + make.of(HEX, 40))
    add("okta", "Authorization: SSWS @@", "00" + make.of(URLSAFE, 40))
    add("firebase", "fcm: @@", f"AAAA{make.of(WORD, 7)}:APA91b{make.of(URLSAFE, 134)}")
    # Private keys.
    for kind in ("RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY", "EC PRIVATE KEY"):
        body = make.key_lines(6)
        cases.append(TrueCase(kind.lower(), f"here it is:\n{pem(kind, body)}\n", body))
    body = make.key_lines(5)
    added = "\n".join("+" + line for line in pem("PRIVATE KEY", body).splitlines())
    cases.append(
        TrueCase(
            "private key in patch",
            f"--- /dev/null\n+++ b/key.pem\n@@ -0,0 +1,7 @@\n{added}\n",
            body.splitlines()[2],
        )
    )
    body = make.key_lines(4)
    line = pem("RSA PRIVATE KEY", body).replace("\n", "\\n")
    cases.append(TrueCase("private key in json", f'{{"private_key": "{line}"}}', body.splitlines()[1]))
    # Passwords and keys given to a name.
    add("python password", "DB_PASSWORD = '@@'", make.password())
    add("python keyword argument", "connect(host='db', user='app', password='@@')", make.password())
    add("javascript object", "const config = { user: 'app', password: '@@' };", make.password())
    add("typescript annotation", 'private readonly dbPassword: string = "@@";', make.password())
    add("go short assignment", 'password := "@@"', make.password())
    add("java properties", "spring.datasource.password=@@", make.password())
    add("yaml password", "database:\n  user: app\n  password: @@\n", make.password())
    add("yaml quoted", "  redis_password: '@@'", make.password())
    add("env file", "POSTGRES_PASSWORD=@@", make.password())
    add("shell export", "export MYSQL_PWD='@@'", make.password())
    add("dockerfile", "ENV ADMIN_PASSWORD=@@", make.password())
    add("compose", "      - KEYCLOAK_ADMIN_PASSWORD=@@", make.password())
    add("json password", '{"user": "app", "password": "@@"}', make.password())
    add("xml element", "<password>@@</password>", make.password())
    add("toml", 'smtp_password = "@@"', make.password())
    add("sql", "CREATE USER app WITH PASSWORD '@@';", make.password())
    add("mysql grant", "GRANT ALL ON app.* TO 'app'@'%' IDENTIFIED BY '@@';", make.password())
    add("adonet", "Server=db;Database=app;User Id=sa;Password=@@;Encrypt=true", make.password())
    add(
        "postgres address",
        "postgres://app:@@@db.acme.test:5432/app".replace("@@@", "@@" + "@"),
        make.of(WORD, 14),
    )
    add("amqp address", "broker = amqps://svc:@@@mq.acme.test/".replace("@@@", "@@" + "@"), make.of(WORD, 18))
    add(
        "mongo address",
        "MONGO_URL=mongodb+srv://svc:@@@c0.acme.test/app".replace("@@@", "@@" + "@"),
        make.of(WORD, 16),
    )
    add(
        "redis address without user",
        "redis://:@@@cache.acme.test:6379/0".replace("@@@", "@@" + "@"),
        make.of(WORD, 20),
    )
    add("curl user", "curl -u deploy:@@ https://repo.acme.test/x.tgz -O", make.password())
    add("command line flag", "mysql -h db --password=@@ app < dump.sql", make.password())
    add("netrc", "machine repo.acme.test login ci password @@", make.password())
    add("prose", "The staging login is admin and the password is: @@ (same on prod)", make.password())
    add(
        "django secret key",
        "SECRET_KEY = '@@'",
        make.of(WORD + "!@#$%^&*(-_=+", 50).replace("(", "x").replace("@", "y"),
    )
    add("rails", "secret_key_base: @@", make.of(HEX, 128))
    add("flask", 'app.secret_key = "@@"', make.of(HEX, 32))
    add("hex api key", 'api_key = "@@"', make.of(HEX, 32))
    add("heroku uuid", "HEROKU_API_KEY=@@", make.uuid())
    add("datadog header", "DD-API-KEY: @@", make.of(HEX, 32))
    add("x-api-key", "curl -H 'x-api-key: @@' https://api.acme.test", make.of(WORD, 40))
    add(
        "basic header",
        "Authorization: Basic @@",
        base64.b64encode(f"svc:{make.of(WORD, 18)}".encode()).decode(),
    )
    add("query string", "GET /v1/items?access_token=@@&page=2", make.of(WORD, 32))
    add("terraform variable", 'variable "x" { default = 1 }\nclient_secret = "@@"', make.of(WORD, 40))
    add("kubernetes secret", "kind: Secret\nstringData:\n  token: @@", make.of(WORD, 40))
    add("swift constant", 'let accessToken = "@@"', make.of(WORD, 32))
    add("c define", '#define API_KEY "@@"', make.of(WORD, 32))
    add("php array", "'auth_token' => '@@',", make.of(WORD, 32))
    add("ruby hash", "auth_token: '@@',", make.of(WORD, 24))
    add("ansible", "vault_token: @@", make.of(WORD, 26))
    add("encryption key base64", "ENCRYPTION_KEY=@@", base64.b64encode(make.of(WORD, 32).encode()).decode())
    add("comparison", 'if token == "@@":', make.of(WORD, 32))
    add("setter", 'conn.setPassword("@@");', make.password())
    add("sshpass", "sshpass -p '@@' ssh deploy@host uptime", make.password())
    add("mysql short flag", "mysql -u root -p@@ app", make.of(WORD, 12))
    add("docker login", "docker login -u ci -p @@ registry.acme.test", make.of(WORD, 16))
    add("openssl", "openssl rsa -in k.pem -passin pass:@@ -out o.pem", make.password())
    add("pgpass", "db.acme.test:5432:app:svc:@@", make.password())
    add("requests auth", 'requests.get(url, auth=("svc", "@@"))', make.password())
    add("jdbc", 'DriverManager.getConnection("jdbc:h2:mem:x", "sa", "@@")', make.password())
    add("algolia", "ALGOLIA_ADMIN_KEY=@@", make.of(HEX, 32))
    add("oauth client", '{"clientId": "web", "clientSecret": "@@"}', make.of(WORD, 32))
    add("aws json", '{"AccessKeyId": "x", "SecretAccessKey": "@@"}', make.of(BASE64, 40))
    add("triple quotes", 'password = """@@"""', make.password())
    add("xml attributes", '<add key="ApiKey" value="@@" />', make.of(WORD, 32))
    add("aws configure", "aws configure set aws_secret_access_key @@", make.of(WORD, 40))
    add("powershell", '$AdminPassword = "@@"', make.password())
    add("log line", "2024-05-02 12:00:01 DEBUG auth: user=bob password=@@ result=ok", make.password())
    return cases + _written(make)[0]


def false_cases(seed: int = 12) -> list[FalseCase]:
    """What code, configuration and texts say about credentials without holding one, and random data."""
    make = Maker(seed)
    sha1, sha256, sha512 = make.of(HEX, 40), make.of(HEX, 64), make.of(BASE64, 86) + "=="
    marks = "-----BEGIN RSA " + "PRIVATE KEY-----"
    texts = {
        "call": "secret = derive_secret(key_material, salt)",
        "await": "const token = await getAccessToken(clientId, scopes);",
        "environment": 'password = os.environ["DB_PASSWORD"]',
        "getenv": 'api_key = os.getenv("ACME_API_KEY", "")',
        "process env": "apiKey: process.env.ACME_API_KEY,",
        "attribute": "self.password = settings.database.password",
        "config lookup": 'token = config.get("auth_token")',
        "shell variable": 'export PGPASSWORD="$DB_PASSWORD"',
        "shell substitution": "TOKEN=$(vault read -field=token secret/ci)",
        "actions expression": "  github_token: ${{ secrets.GITHUB_TOKEN }}",
        "compose variable": "POSTGRES_PASSWORD: ${POSTGRES_PASSWORD:?set it}",
        "terraform reference": "client_secret = var.client_secret",
        "terraform data": "password = data.aws_secretsmanager_secret_version.db.secret_string",
        "helm": "password: {{ .Values.db.password | quote }}",
        "jinja": 'password: "{{ vault_db_password }}"',
        "placeholder words": "API_KEY=your-api-key-here",
        "placeholder angle": 'password = "<your password>"',
        "placeholder x": "STRIPE_KEY=sk_live_" + "x" * 24,
        "placeholder stars": "password: ********",
        "change me": 'ADMIN_PASSWORD = "changeme"',
        "replace me": "SECRET_KEY=REPLACE_ME_BEFORE_DEPLOY",
        "aws documentation id": "aws_access_key_id = AKIA" + "IOSFODNN7" + "EXAMPLE",
        "aws documentation secret": "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY" + "EXAMPLEKEY",
        "empty": 'password = ""',
        "none": "password: Optional[str] = None",
        "null": '{"password": null, "token": null}',
        "typescript type": "interface Login { username: string; password: string; otpToken?: string }",
        "python annotation": "def login(user: str, password: str, token: SecretStr) -> Session:",
        "go struct": 'Password string `json:"password" validate:"required"`',
        "rust struct": "pub struct Auth { pub api_key: String, pub secret_key: Option<String> }",
        "label": '<label for="password">Password</label>',
        "html input": '<input type="password" name="password" autocomplete="current-password">',
        "error message": 'raise ValueError("password must be at least 12 characters")',
        "translation": '"password.tooShort": "Your password is too short",',
        "prose": "The token is passed to the client, which stores the secret in its keychain.",
        "prose colon": "Password: at least 12 characters, one digit. Token: see the settings page.",
        "prose is": "If the password is wrong three times the account is locked.",
        "enum": "TOKEN_EXPIRED = 'token_expired'",
        "constant name": 'ACCESS_TOKEN_COOKIE = "access_token_cookie"',
        "header name": 'API_KEY_HEADER = "X-Api-Key"',
        "camel value": 'const PASSWORD_FIELD = "newPasswordConfirmation";',
        "route": 'PASSWORD_RESET_URL = "/accounts/password/reset/confirm"',
        "address": 'TOKEN_URL = "https://auth.acme.test/oauth2/v2.0/token"',
        "path": 'private_key_path = "/etc/ssl/private/server.pem"',
        "file": "SECRET_FILE=/run/secrets/db_password",
        "secret name": "secretName: acme-tls-certificate-2024",
        "secret id": 'secret_id = "arn:aws:secretsmanager:eu-west-1:000000000000:secret:db"',
        "key id": "kms_key_id = " + make.uuid(),
        "expiry": "ACCESS_TOKEN_EXPIRE_MINUTES = 60",
        "count": "max_tokens = 4096, prompt_tokens=1832, total_tokens: 2301",
        "tokenizer": 'tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased-v2")',
        "lexer": "if token == 'IDENTIFIER' and next_token != 'RPAREN':",
        "page token": "next_page_token = 'CAUQAA'",
        "csrf template": '<input type="hidden" name="csrf_token" value="{{ csrf_token() }}">',
        "react key": '<Item key="item-7" secretKey={props.secretKey} />',
        "primary key": "PRIMARY KEY (id), FOREIGN KEY (user_id) REFERENCES users (id)",
        "cache key": 'cache_key = f"user:{user_id}:profile:v2"',
        "public key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + make.of(BASE64, 43) + " me@host",
        "certificate": "-----BEGIN CERTIFICATE-----\n" + make.key_lines(4) + "\n-----END CERTIFICATE-----",
        "private key marks in code": f'if "{marks}" in text: raise ValueError("a key")',
        "private key marks in docs": f"A file that begins with `{marks}` is a private key.",
        "git commit": f"commit {sha1}\nAuthor: A <a@acme.test>\n",
        "git index": f"diff --git a/x b/x\nindex {sha1[:10]}..{sha1[10:20]} 100644",
        "docker digest": f"FROM python@sha256:{sha256}",
        "pip hash": f"    --hash=sha256:{sha256}",
        "npm integrity": f'      "integrity": "sha512-{sha512}",',
        "go sum": "golang.org/x/text v0.3.7 h1:" + make.of(BASE64, 43) + "=",
        "cargo checksum": f'checksum = "{sha256}"',
        "subresource": f'<script src="a.js" integrity="sha384-{make.of(BASE64, 64)}"></script>',
        "data address": 'src="data:image/png;base64,iVBORw0KGgo' + make.of(BASE64, 120) + '"',
        "uuid": f'"id": "{make.uuid()}", "parent": "{make.uuid()}"',
        "etag": f'ETag: "{make.of(HEX, 32)}"',
        "bcrypt": 'password_hash = "$2b$12$' + make.of(WORD, 53) + '"',
        "pbkdf2": 'PASSWORD = "pbkdf2_sha256$600000$' + make.of(WORD, 22) + '$"',
        "git address": "git clone https://git@github.com/acme/site.git",
        "address with port": "http://localhost:8080/@scope/package@1.2.3",
        "address template": "postgres://${DB_USER}:${DB_PASS}@db:5432/app",
        "address example": "postgres://user:password@localhost:5432/db",
        "address same": "amqp://guest:guest@localhost:5672/",
        "bearer template": 'headers = {"Authorization": f"Bearer {token}"}',
        "bearer words": "Send it as `Authorization: Bearer <access-token>` with each request.",
        "bearer prose": "Bearer authentication requires a token",
        "test double": 'login("alice", password="test-password")',
        "fake fixture": 'FAKE_TOKEN = "fake-token-for-tests"',
        "curl variable": 'curl -u "$CI_USER:$CI_TOKEN" https://repo.acme.test/x',
        "flag variable": "mysql --password=$MYSQL_PWD app",
        "argument parser": 'parser.add_argument("--password", help="the password to use", default=None)',
        "getter": "public String getPassword() { return this.password; }",
        "comparison": "if (password != confirmPassword) { throw mismatch; }",
        "regular expression": 'SECRET_PATTERN = r"(?i)secret[_-]?key\\s*[:=]"',
        "version": 'apiVersion: "2024-10-01-preview", secretVersion: 7',
        "long identifier": "from acme.auth.token_verification import TokenVerificationMiddlewareV2",
        "mixed camel": "new OAuth2AccessTokenResponseHttpMessageConverterFactoryBean()",
        "test name": "def test_password_reset_token_expires_after_24_hours():",
        "sequence": 'alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"',
        "masked": "password: [masked: password], key [masked: GitHub token]",
        "sql column": "ALTER TABLE users ADD COLUMN password_digest varchar(72) NOT NULL;",
        "policy text": 'password_policy = "min12-upper-lower-digit"',
        "question": "Should the api key go into the header or the query? And the client secret: monthly?",
        "vault path": 'secret = "kv/data/acme/prod/db"',
        "ssm": 'token: "ssm:/acme/prod/token"',
        "docker ports": "docker run -d -p 8080:8080 -p 127.0.0.1:9443:9443 nginx:1.27.3",
        "docker compose project": "docker compose -p frontend up --build",
        "mysql prompt": "mysql -u root -p app < dump.sql",
        "auth names": 'requests.get(url, auth=("username", "password"))',
        "auth variables": "session.auth = (config.user, config.password2)",
        "copy keeps": "cp -a build2024release /srv/www && helm upgrade -a release",
        "type of a key": "def load(private_key: ed25519.Ed25519PrivateKey, salt_key: PKCS7Key) -> None:",
        "graphql": "mutation Login($mail: String!, $password: String!) { login(password: $password) }",
        "protobuf": "string access_token = 1; // opaque\nbytes secret_key = 2;",
    }
    return [*(FalseCase(name, text) for name, text in texts.items()), *_written(make)[1]]


def _written(make: Maker) -> tuple[list[TrueCase], list[FalseCase]]:
    """The cases of the file beside this one."""
    cases = tomllib.loads(Path(__file__).with_name("secret_cases.toml").read_text(encoding="utf-8"))
    trues = []
    for case in cases["true"]:
        before, secret, after = re.split("[⟦⟧]", case["text"])
        secret = make.filled(secret) if "«" in secret else make.like(secret)
        text = f"{make.filled(before)}{secret}{make.filled(after)}"
        trues.append(TrueCase(f"{case['name']} (written)", text, secret, case.get("known", False)))
    return trues, [
        FalseCase(f"{case['name']} (written)", make.filled(case["text"]), case.get("known", False))
        for case in cases["false"]
    ]
