"""The files by which Codex knows the bundle, as models: their keys, and the limits that Codex sets."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from baton.policy.section import Effort, Name, Slug

MAX_DESCRIPTION = 150
"""Characters of a skill's description: the list of all skills shares a small part of the context."""

MAX_SKILL_LINES = 79
"""Lines of a SKILL.md; longer material lies in `references/`."""


def _inside(value: str) -> str:
    if not value.startswith("./") or ".." in value.split("/"):
        raise ValueError("must start with ./ and stay inside the plugin")
    return value


Line = Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\r\n]+$")]
BundlePath = Annotated[str, AfterValidator(_inside)]
Version = Annotated[str, StringConstraints(pattern=r"^\d+\.\d+\.\d+([.-][0-9A-Za-z.-]+)?$")]
Url = Annotated[str, StringConstraints(pattern=r"^https://\S+$")]
Seconds = Annotated[float, Field(gt=0)]


class Json(BaseModel):
    """Base of JSON files: camelCase keys, unknown ones refused."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel)


class Plain(BaseModel):
    """Base of files whose keys are snake_case."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Author(Json):
    """Who made the plugin."""

    name: Line
    email: Line | None = None
    url: Url | None = None


class PluginInterface(Json):
    """How the plugin is shown to people."""

    display_name: Line
    short_description: Annotated[Line, Field(max_length=128)]
    long_description: Line | None = None
    developer_name: Line | None = None
    category: Line
    capabilities: list[Line] = []
    website_url: Annotated[Url | None, Field(alias="websiteURL")] = None
    default_prompt: Annotated[list[Annotated[Line, Field(max_length=128)]], Field(max_length=3)] = []
    brand_color: Annotated[str, StringConstraints(pattern=r"^#[0-9A-Fa-f]{6}$")] | None = None
    composer_icon: BundlePath | None = None
    logo: BundlePath | None = None
    screenshots: list[BundlePath] = []


class PluginManifest(Json):
    """`.codex-plugin/plugin.json`."""

    name: Name
    version: Version
    description: Annotated[Line, Field(max_length=300)]
    license: Line
    keywords: list[Line] = []
    author: Author | None = None
    homepage: Url | None = None
    repository: Url | None = None
    skills: BundlePath
    mcp_servers: BundlePath
    hooks: BundlePath | None = None
    apps: BundlePath | None = None
    interface: PluginInterface


class LocalSource(Json):
    """A plugin that lies in the marketplace's own folder."""

    source: Literal["local"]
    path: BundlePath


class Installation(Json):
    """What people may do with a plugin."""

    installation: Literal["AVAILABLE", "INSTALLED_BY_DEFAULT", "NOT_AVAILABLE"]
    authentication: Literal["ON_INSTALL", "ON_USE"]


class MarketEntry(Json):
    """One plugin of a marketplace."""

    name: Name
    source: LocalSource
    policy: Installation
    category: Line


class MarketInterface(Json):
    """How the marketplace is shown."""

    display_name: Line


class Marketplace(Json):
    """`.agents/plugins/marketplace.json`."""

    name: Name
    interface: MarketInterface
    plugins: Annotated[list[MarketEntry], Field(min_length=1)]


class ToolApproval(Plain):
    """Approval of one tool."""

    approval_mode: Literal["auto", "prompt", "approve"]


class McpServer(Plain):
    """One server of `.mcp.json`, with the keys that Codex honours in a plugin."""

    command: Line
    args: list[str] = []
    cwd: Literal["."]
    env: dict[str, str] = {}
    env_vars: list[Line] = []
    startup_timeout_sec: Seconds
    tool_timeout_sec: Seconds
    supports_parallel_tool_calls: bool = False
    default_tools_approval_mode: Literal["auto", "prompt", "approve"] = "auto"
    tools: dict[str, ToolApproval] = {}
    required: bool = False
    enabled_tools: list[Line] | None = None


class McpFile(Json):
    """`.mcp.json`."""

    mcp_servers: Annotated[dict[Name, McpServer], Field(min_length=1)]


class SkillFront(Plain):
    """Front matter of a SKILL.md."""

    name: Name
    description: Annotated[Line, Field(min_length=40, max_length=MAX_DESCRIPTION)]


class SkillInterface(Plain):
    """How a skill is shown to people."""

    display_name: Annotated[Line, Field(max_length=64)]
    short_description: Annotated[Line, Field(max_length=64)]
    default_prompt: Annotated[Line, Field(max_length=200)]


class SkillPolicy(Plain):
    """When a skill may be used."""

    allow_implicit_invocation: bool


class SkillTool(Plain):
    """A tool that a skill needs."""

    type: Literal["mcp"]
    value: Line
    description: Line | None = None


class SkillDependencies(Plain):
    """What a skill needs."""

    tools: list[SkillTool]


class SkillSheet(Plain):
    """`agents/openai.yaml` of a skill."""

    interface: SkillInterface
    policy: SkillPolicy
    dependencies: SkillDependencies | None = None


class AgentFile(Plain):
    """`agents/<name>.toml`: one unknown key and Codex drops the role."""

    name: Name
    description: Annotated[Line, Field(max_length=200)]
    developer_instructions: Annotated[str, Field(min_length=1, max_length=20_000)]
    model: Slug
    model_reasoning_effort: Effort | None = None
    nickname_candidates: list[Line] | None = None
