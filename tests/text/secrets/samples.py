"""Formats of secrets of many services, as their issuers document them, from which made-up ones are drawn.

In a format `<a24>` stands for 24 letters or digits, `<l>` and `<u>` for lower and upper case, `<x>` for hexadecimal
digits, `<d>` for digits, `<w>` for letters, digits, `_` and `-`, `<b>` for base64, `<k>` for the letters of age's keys.
"""

import re
import string
from collections.abc import Iterator
from random import Random

_ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "x": "0123456789abcdef",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "k": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
    "z": "abcdefghijklmnopqrstuvwxyz234567",
}
_PART = re.compile(r"<([a-z])(\d+)>")
UUID = "<x8>-<x4>-4<x3>-a<x3>-<x12>"

# By its form alone, whatever stands beside it.
BY_FORM = {
    "Anthropic": "sk-ant-api03-<w93>AA", "OpenAI": "sk-proj-<w74>T3BlbkFJ<w74>", "OpenAI, old": "sk-<a20>T3BlbkFJ<a20>",
    "OpenRouter": "sk-or-v1-<x64>", "Langfuse": f"sk-lf-{UUID}", "Hugging Face": "hf_<a34>", "Groq": "gsk_<a52>",
    "xAI": "xai-<a80>", "Perplexity": "pplx-<a48>", "Replicate": "r8_<a37>", "NVIDIA": "nvapi-<w64>",
    "LangSmith": "lsv2_pt_<x32>_<x10>", "Pinecone": "pcsk_<a5>_<a63>", "Fireworks": "fw_<a24>",
    "Together": "tgp_v1_<w43>", "Cerebras": "csk-<l48>", "Voyage": "pa-<w43>", "Jina": "jina_<x32><w28>",
    "Tavily": "tvly-dev-<a32>", "Firecrawl": "fc-<x32>", "ElevenLabs": "sk_<x48>", "E2B": "e2b_<x40>",
    "Modal": "ak-<a22>", "PromptLayer": "pl_<x32>", "GitHub": "ghp_<a36>", "GitHub, fine": "github_pat_<a22>_<a59>",
    "GitLab": "glpat-<w20>", "GitLab deploy": "gldt-<w20>", "GitLab runner": "glrt-<w20>",
    "GitLab runner, new": "glrt-t3_<w20>.01.<l9>", "GitLab registration": "GR1348941<w20>",
    "GitLab CI": "glcbt-64_<w20>", "GitLab trigger": "glptt-<x40>", "GitLab feed": "glft-<w20>",
    "Bitbucket": "ATBB<a32>", "Atlassian": "ATATT3xFfGF0<w180>=<u8>", "npm": "npm_<a36>",
    "PyPI": "pypi-AgEIcHlwaS5vcmc<w120>", "RubyGems": "rubygems_<x48>", "crates.io": "cio<a32>", "NuGet": "oy2<l43>",
    "Clojars": "CLOJARS_<l60>", "Docker Hub": "dckr_pat_<w27>", "Docker Hub organisation": "dckr_oat_<w32>",
    "Artifactory": "AKCp<a69>", "Sourcegraph": "sgp_<x16>_<x40>", "SonarQube": "sqp_<x40>",
    "Buildkite": "bkua_<x40>", "CircleCI": "CCIPAT_<a22>_<x40>", "Postman": "PMAK-<x24>-<x34>",
    "ReadMe": "rdme_<l70>", "Octopus": "API-<u26>", "Harness": "pat.<w22>.<x24>.<a20>", "Infracost": "ico-<a32>",
    "LaunchDarkly": f"api-{UUID}", "AWS": "AKIA<u16>", "AWS session": "ASIA<u16>", "AWS Bedrock": "ABSK<b128>",
    "Google": "AIza<w35>", "Google OAuth": "GOCSPX-<w28>", "Google access": "ya29.<w160>",
    "Google refresh": "1//0<w60>", "Azure client": "<a3>8Q~<w34>", "Azure DevOps": "<a76>AZDO<a4>",
    "Azure storage": "<b76>+ASt<b6>==", "Azure function": "<a44>AzFu<a8>==", "DigitalOcean": "dop_v1_<x64>",
    "DigitalOcean OAuth": "doo_v1_<x64>", "Alibaba": "LTAI5t<a18>", "Tencent": "AKID<a32>", "Yandex": "AQVN<w36>",
    "Scaleway": "SCW<u17>", "Cloudflare origin": "v1.0-<x24>-<x146>", "Heroku": "HRKU-<w60>", "Netlify": "nfp_<a36>",
    "Fly": "fo1_<w43>", "Render": "rnd_<a28>", "Vault": "hvs.<w95>", "Vault batch": "hvb.<w140>",
    "Vault, older": "s.<a24>",
    "Terraform": "<a14>.atlasv1.<w67>", "Pulumi": "pul-<x40>", "Doppler": "dp.pt.<a43>",
    "Doppler service": "dp.st.prd_main.<a43>", "1Password": "ops_eyJ<w250>", "Tailscale": "tskey-auth-<a17>-<a32>",
    "JumpCloud": "jca_<a36>", "OpenShift": "sha256~<w43>", "age": "AGE-SECRET-KEY-1<k58>", "Databricks": "dapi<x32>-2",
    "Supabase": "sbp_<x40>", "Supabase secret": "sb_secret_<w31>", "PlanetScale": "pscale_tkn_<w43>",
    "Neon": "napi_<l64>", "MongoDB": "mdb_sa_sk_<w40>", "CockroachDB": "CCDB1_<a22>_<a40>",
    "Airtable": "pat<a14>.<x64>", "Prefect": "pnu_<a36>", "dbt": "dbtc_<w40>", "Sentry": "sntryu_<x64>",
    "Sentry organisation": "sntrys_eyJ<b120>_<b43>", "New Relic": "NRAK-<u27>", "New Relic licence": "<x36>NRAL",
    "1Password secret key": "A3-<u6>-<u6>-<u5>-<u5>-<u5>-<u5>", "1Password, older key": "A3-<u6>-<u11>-<u5>-<u5>-<u5>",
    "Infisical": "st.<x24>.<x32>.<x32>", "Scalingo": "tk-us-<w48>", "ClickHouse": "4b1d<a38>", "Adafruit": "aio_<a28>",
    "PagerDuty": "u+<w18>", "Grafana": "glsa_<a32>_<x8>",
    "Grafana Cloud": "glc_eyJ<b100>==", "Dynatrace": "dt0c01.<u24>.<u64>", "Honeycomb": "hcaik_<l58>",
    "PostHog": "phx_<a43>", "MaxMind": "<a6>_<a29>_mmk", "Slack": "xoxb-<d12>-<d13>-<a24>",
    "Slack app": "xapp-1-<u11>-<d13>-<x64>",
    "Telegram": "<d10>:AA<w33>", "Discord": "MT<w24>.G<w5>.<w38>", "Notion": "ntn_<d11><a35>",
    "Notion, old": "secret_<a43>",
    "Linear": "lin_api_<a40>", "Asana": "1/<d16>:<x32>", "ClickUp": "pk_<d8>_<u32>", "Figma": "figd_<w40>",
    "Dropbox": "sl.<w140>", "HubSpot": f"pat-na1-{UUID}", "Typeform": "tfp_<w44>", "Contentful": "CFPAT-<w43>",
    "Frame.io": "fio-u-<w64>", "Adobe": "p8e-<l32>", "SendGrid": "SG.<w22>.<w43>", "Mailgun": "key-<x32>",
    "Mailchimp": "<x32>-us21", "Brevo": "xkeysib-<x64>-<a16>", "Resend": "re_<a8>_<a24>", "Klaviyo": "pk_<x34>",
    "OneSignal": "os_v2_app_<z100>", "Twilio": "SK<x32>", "Telnyx": "KEY01<u30>_<a22>", "Firebase": "AAAA<w7>:<w140>",
    "Stripe": "sk_live_<a24>", "Stripe restricted": "rk_live_<a99>", "Stripe webhook": "whsec_<a32>",
    "Shopify": "shpat_<x32>", "Shopify app": "shpss_<x32>", "Square": "sq0atp-<w22>",
    "PayPal": "access_token$production$<l16>$<x32>",
    "Plaid": f"access-production-{UUID}", "Razorpay": "rzp_live_<a14>", "Mollie": "live_<a30>",
    "GoCardless": "live_<w40>", "Flutterwave": "FLWSECK_TEST-<x32>-X", "Lob": "live_<x35>", "EasyPost": "EZAK<a54>",
    "Shippo": "shippo_live_<x40>", "Duffel": "duffel_live_<w43>", "Facebook": "EAAC<a160>",
    "Mapbox": "sk.eyJ<w80>.<w22>",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJ<w60>.<w43>",
    "Slack webhook": "https://hooks.slack.com/services/T<u10>/B<u10>/<a24>",
    "Discord webhook": "https://discord.com/api/webhooks/<d18>/<w68>",
    "Teams webhook": f"https://x.webhook.office.com/webhookb2/{UUID}@{UUID}/IncomingWebhook/<x32>/{UUID}",
    "Azure SAS": "https://x.blob.core.windows.net/c?sv=2022-11-02&se=2030-01-01&sig=<a20>%2B<a20>%3D",
    "Weights & Biases": "wandb_v1_<w77>", "Helicone": "sk-helicone-<l7>-<l7>-<l7>-<l7>",
    "Artifactory reference": "cmVmdGtu<a56>", "Twitter": "AAAAAAAAAAAAAAAAAAAA<a30>%3D<a50>", "Okta": "SSWS 00<w40>",
    "Vercel": "vcp_<a56>", "Zapier webhook": "https://hooks.zapier.com/hooks/catch/<d7>/<l7>",
    "GitLab runner, refresh": "glrtr-<w20>", "GitLab session": "_gitlab_session=<x32>",
    "Facebook business": "EAAG<a180>", "Facebook ads": "EAAB<a180>", "Instagram": "IGQVJ<a150>",
    "Instagram, new": "IGAA<a150>", "Amazon MWS": f"amzn.mws.{UUID}", "Amazon login": "amzn1.oa2-cs.v1.<x64>",
    "Amazon refresh": "Atzr|IwEBI<w160>", "RunPod": "rpa_<u40><l6>", "Google, new": "AQ.Ab8RN6<w44>",
    "Bitwarden": f"0.{UUID}.<a30>:<b22>==", "PostHog feature flags": "phs_<a43>", "Intercom": "dG9rOj<a53>=",
    "Discord, older": "MjQ1NTU5MDg3NTI0MjE2ODMy.Dk<w4>.<w27>", "GitHub in an address": "https://<x40>@github.com/a/b",
    "Azure Logic App": "https://x.logic.azure.com:443/workflows/<x32>/triggers/manual/paths/invoke?sv=1.0&sig=<w43>",
    "Azure function's address": "https://x.azurewebsites.net/api/go?code=<a54>==",
    "Azure storage, older": "AccountName=x;AccountKey=<b86>==;EndpointSuffix=core.windows.net",
    "Azure service bus": "Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=<b43>=",
    "Azure API Management": "Ocp-Apim-Subscription-Key: <x32>", "WireGuard": "PrivateKey = <b43>=",
    "npm, older": f"//registry.example/:_authToken={UUID}",
    "PuTTY": "Private-Lines: 2\\n<b64>\\n<b40>\\nPrivate-MAC: <x40>",
    "AWS secret": "aws_secret_access_key = <b40>", "AWS secret in JSON": "SecretAccessKey: <b40>",
    "AWS session token": "aws_session_token=<b300>", "Bearer": "Authorization: Bearer <a40>",
    "S3 address": "https://x.s3.amazonaws.com/k?X-Amz-Expires=60&X-Amz-Signature=<x64>",
}  # fmt: skip

# By the name of the service beside it: the name of the variable, and the format.
BY_NAME = {
    "DATADOG_API_KEY": "<x32>", "CLOUDFLARE_API_TOKEN": "<w40>", "ALGOLIA_ADMIN_KEY": "<x32>",
    "TWILIO_AUTH_TOKEN": "<x32>", "HEROKU_API_KEY": UUID, "LINODE_TOKEN": "<x64>", "HCLOUD_TOKEN": "<a64>",
    "VULTR_API_KEY": "<u36>", "FASTLY_API_TOKEN": "<w32>", "MISTRAL_API_KEY": "<a32>", "COHERE_API_KEY": "<a40>",
    "DEEPGRAM_API_KEY": "<x40>", "ASSEMBLYAI_API_KEY": "<x32>", "SERPER_API_KEY": "<x40>", "WANDB_API_KEY": "<x40>",
    "KAGGLE_KEY": "<x32>", "SNYK_TOKEN": UUID, "CODECOV_TOKEN": UUID, "RAILWAY_TOKEN": UUID,
    "AUTH0_CLIENT_SECRET": "<w64>",
    "OKTA_API_TOKEN": "00<w40>", "PAGERDUTY_TOKEN": "<a20>", "ROLLBAR_ACCESS_TOKEN": "<x32>", "TRELLO_TOKEN": "<x64>",
    "SPOTIFY_CLIENT_SECRET": "<x32>", "TWITCH_CLIENT_SECRET": "<l30>", "BINANCE_SECRET_KEY": "<a64>",
    "RAPIDAPI_KEY": "<a50>", "OPENWEATHER_API_KEY": "<x32>", "INFURA_PROJECT_SECRET": "<x32>", "POSTMARK_TOKEN": UUID,
    "ZOOM_CLIENT_SECRET": "<a32>", "BROWSERSTACK_ACCESS_KEY": "<a20>", "VAULT_TOKEN": "s.<a24>", "GH_TOKEN": "<x40>",
}  # fmt: skip

CONTEXTS = ('value = "{}"\n', "  thing: {}\n", "export THING={}\n", "see {} for it\n", '{{"v":"{}"}}')
NAMED = ('{} = "{}"\n', "{}: {}\n", "export {}={}\n", '"{}": "{}",\n')

# Passwords as people write them down.
PASSWORDS = (
    "password: {}\n", "  db_password: {}  # old\n", "passwd: {}\n", "pwd={}\n", "DB_PASS={}\n", "export PASSWORD={}\n",
    'password = "{}"\n', "password: '{}'\n", '"password": "{}",\n', "spring.datasource.password={}\n", "Password={};\n",
    "c = 'Server=h;User Id=sa;Password={};'\n", 'jdbc = "jdbc:mysql://h/d?user=a&password={}&ssl=true"\n',
    "<password>{}</password>\n", '<property name="db.password" value="{}"/>\n', "tool --password {}\n",
    "tool --db-password={} run\n", "mysql -u root -p{} shop\n", "curl -u admin:{} https://h.example\n",
    "# password: {} (rotate)\n",
)  # fmt: skip


def draw(form: str, random: Random) -> str:
    """Return a made-up secret of a format."""
    return _PART.sub(lambda part: "".join(random.choices(_ALPHABETS[part[1]], k=int(part[2]))), form)


def samples(number: int, seed: int = 0) -> Iterator[tuple[str, str, str]]:
    """Return services, secrets, and texts in which they stand, so many of each service and context."""
    random = Random(seed)
    for service, form in BY_FORM.items():
        for context in CONTEXTS:
            for secret in (draw(form, random) for _ in range(number)):
                yield service, secret, context.format(secret)
    for name, form in BY_NAME.items():
        for context in NAMED:
            for secret in (draw(form, random) for _ in range(number)):
                yield name, secret, context.format(name, secret)
