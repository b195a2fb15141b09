"""The shape of the policy. It holds no defaults: the shipped `policy/policy.toml` supplies them all."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, Strict, StringConstraints

from baton.contract.base import nearest
from baton.contract.errors import InvalidInput
from baton.contract.states import ChangeIntent
from baton.contract.workflow import Executor, Step, read_binding
from baton.policy.narrowing import FIXED, MAX, MIN, SUBSET, SUPERSET, ordered

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[str, ...] = get_args(Effort)
"""Reasoning efforts a worker may be given, lowest first; without `ultra`, which delegates by itself."""


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) != len(values):
        raise ValueError("must not name an entry twice")
    return values


def _one_line(value: str) -> str:
    if not value.isprintable():
        raise ValueError("must be one line of printable text")
    return value


def _folder_name(value: str) -> str:
    if value in ("", ".", "..") or not value.isprintable() or "/" in value or "\\" in value:
        raise ValueError("must be the name of a folder, not a path")
    return value


def _printable(value: str) -> str:
    if value and not value.isprintable():
        raise ValueError("must be one line of printable text")
    return value


def _path(value: str) -> str:
    if not value.strip() or not value.isprintable():
        raise ValueError("must be the path of a folder")
    return value


# Strict everywhere, so that "4" is not silently read as 4; TOML has arrays only, hence lax tuples and enums.
_LOOSE = Strict(False)
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,39}$")]
Line = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_one_line)]
Slug = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,99}$")]
Seconds = Annotated[float, Field(gt=0, le=604_800, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000_000)]
Bytes = Annotated[int, Field(ge=1, le=2**53)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
VariableNames = Annotated[tuple[VariableName, ...], _LOOSE, AfterValidator(_unique)]
Host = Annotated[str, StringConstraints(pattern=r"^(\*\*?\.)?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$")]
FolderName = Annotated[str, AfterValidator(_folder_name)]
Argv = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], _LOOSE, Field(min_length=1)]

FolderPath = Annotated[str, Field(max_length=1000), AfterValidator(_path)]
Word = Annotated[str, Field(max_length=1000), AfterValidator(_printable)]
ModelName = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9][A-Za-z0-9._:/@\[\]-]{0,99})?$")]
PersonaName = Annotated[str, Field(min_length=1, max_length=40)]
Instructions = Annotated[str, Field(min_length=1, max_length=4000)]
Dollars = Annotated[float, Field(ge=0, le=1e6)]
Capability = Literal[
    "coding",
    "research",
    "reasoning",
    "writing",
    "review",
    "planning",
    "prompt_authoring",
    "testing",
    "synthesis",
]
"""Kinds of questions that agents are scored for."""
CAPABILITIES: tuple[str, ...] = get_args(Capability)

LOWER_EFFORT = ordered(*reversed(EFFORTS))


class Section(BaseModel):
    """Base of every table of the policy."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )


class Root(Section):
    """How the supervising session works."""

    mode: Annotated[Literal["adaptive", "control-plane"], ordered("adaptive", "control-plane")]
    """`adaptive`: small, coupled or obvious work it does itself. `control-plane`: it edits nothing."""


class Routing(Section):
    """Which role a task gets."""

    default_role: Annotated[Name, FIXED]
    """The role of a task that names neither role nor tier."""


class Tier(Section):
    """A family of models, resolved against what the installed Codex lists."""

    family: Annotated[Name, FIXED]
    """The last part of the family's model names: `luna` in `gpt-5.6-luna`."""
    resolve: Annotated[Literal["latest", "pinned"], FIXED]
    """`latest`: the newest listed member of the family. `pinned`: always the model named below."""
    pinned: Annotated[Slug, FIXED]
    """The model for `pinned`, also the one that the tracked skills and agents are rendered with."""
    default_effort: Annotated[Effort, LOWER_EFFORT]
    """The reasoning effort of a task that names this tier and no effort."""


class Role(Section):
    """A kind of worker: its model, its effort and its standing instructions."""

    description: Annotated[Line, FIXED]
    """When to use it, in one line."""
    tier: Annotated[Name, FIXED]
    """The tier it runs on."""
    effort: Annotated[Effort, LOWER_EFFORT]
    """Its reasoning effort."""
    change_intent: Annotated[ChangeIntent, _LOOSE, FIXED, Field(title="Change Intent")]
    """Whether its tasks are meant to change files: `required`, `optional` or `forbidden`."""
    template: Annotated[Name, FIXED]
    """The standing instructions: a file of `policy/templates/roles/`, without `.md.j2`."""
    instructions: Annotated[str, Field(max_length=20_000), FIXED]
    """More instructions, added after the template's; may be empty."""


class AdviceRules(Section):
    """From what size on work is worth a worker. Advice refuses nothing."""

    solo_lines: Annotated[Count, FIXED]
    """Up to so many changed lines the supervisor is advised to do the work itself."""
    delegate_lines: Annotated[Count, FIXED]
    """From so many changed lines on, delegating is advised even where the work is coupled."""


class Escalation(Section):
    """What Baton does by itself when an attempt did not succeed; the ladder's rungs are in its table."""

    max_steps: Annotated[Annotated[int, Field(ge=0, le=10)], MAX]
    """Attempts at a higher effort or tier in the life of a task; 0 leaves the decision to the supervisor."""
    max_effort: Annotated[Effort, LOWER_EFFORT]
    """The highest effort that is chosen by itself."""
    tiers: Annotated[tuple[Name, ...], _LOOSE, AfterValidator(_unique), SUBSET]
    """Tiers from the weakest to the strongest; none beyond the last is chosen by itself."""
    max_waits: Annotated[Annotated[int, Field(ge=0, le=10)], MAX]
    """How often a task waits for a service that limits, is overloaded or out of reach."""
    wait_seconds: Annotated[Seconds, MAX]
    """The longest single wait; a service that asks for more ends the task."""
    other_model: Annotated[bool, ordered(True, False)]
    """Whether another model of the same family takes over when the service does not know the tier's."""


class Price(Section):
    """What a model costs, per million tokens, in the person's own currency."""

    input: Annotated[Annotated[float, Field(ge=0, le=1e6)], FIXED]
    """Input that was not cached."""
    cached_input: Annotated[Annotated[float, Field(ge=0, le=1e6)], FIXED]
    """Input that was cached."""
    output: Annotated[Annotated[float, Field(ge=0, le=1e6)], FIXED]
    """Output, reasoning included."""


class Concurrency(Section):
    """How much runs at once."""

    max_parallel: Annotated[Count, MAX]
    """Workers at once in one run; further tasks wait."""
    max_workers: Annotated[Count, MAX]
    """Workers at once in all runs of this machine together; they take turns."""
    max_threads_per_server: Annotated[Annotated[int, Field(ge=1, le=64)], MAX]
    """Threads in one Codex app-server process; more workers start another one."""


class Deadlines(Section):
    """When waiting ends, in seconds. Each one that fires is named in the result."""

    start_seconds: Annotated[Seconds, MAX]
    """For Codex to start a worker's thread."""
    idle_seconds: Annotated[Seconds, MAX]
    """Without any event from a working worker."""
    turn_seconds: Annotated[Seconds, MAX]
    """For one turn of a worker."""
    run_seconds: Annotated[Seconds, MAX]
    """For a whole run."""
    check_seconds: Annotated[Seconds, MAX]
    """For one verification command."""
    owner_grace_seconds: Annotated[Seconds, MAX]
    """From the end of the session that waits until its run stops, so that another session can take over."""


class Limits(Section):
    """How much of everything is handled. Sizes are bytes."""

    kept_bytes: Annotated[Annotated[int, Field(ge=0, le=2**53)], FIXED]
    """Ignored and nested content of one attempt that is kept beside its result."""
    check_memory_bytes: Annotated[Bytes, MAX]
    """Memory of one verification command with all its children."""
    check_output_bytes: Annotated[Bytes, MAX]
    """Output of one verification command; more ends it."""
    plain_folder_files: Annotated[Count, MAX]
    """Files in a workspace that is not a git repository."""
    plain_folder_bytes: Annotated[Bytes, MAX]
    """Size of a workspace that is not a git repository."""
    scope_siblings: Annotated[Count, FIXED]
    """Neighbours of a file scope made read-only one by one; with more, writes there are only detected."""


class Environment(Section):
    """Names of environment variables let through beside the built-in list."""

    pass_to_workers: Annotated[VariableNames, SUBSET]
    """For commands that workers run. A worker can read and print what is named here."""
    pass_to_checks: Annotated[VariableNames, SUBSET]
    """For verification commands."""


class Network(Section):
    """What workers may reach."""

    worker_hosts: Annotated[tuple[Host, ...], _LOOSE, AfterValidator(_unique), SUBSET]
    """Hosts that workers may connect to; empty means no network at all."""


class EnforcementRules(Section):
    """What happens where a boundary cannot be held by the sandbox."""

    require_prevention: Annotated[bool, ordered(False, True)]
    """Refuse a task whose scope the sandbox cannot hold, instead of detecting violations afterwards."""


class Dependencies(Section):
    """Installed dependencies of the workspace, which a worker's fresh worktree lacks."""

    folders: Annotated[tuple[FolderName, ...], _LOOSE, AfterValidator(_unique), SUBSET]
    """Folder names looked for in the workspace."""
    mode: Annotated[Literal["copy", "link", "none"], ordered("copy", "link", "none")]
    """`link`: read-only to the worker. `copy`: the worker has its own. `none`: not there."""


class Checks(Section):
    """How verification commands run."""

    unsandboxed: Annotated[tuple[Argv, ...], _LOOSE, AfterValidator(_unique), SUBSET]
    """Beginnings of commands that run without the sandbox, each a list of words; every result says so."""


class Retention(Section):
    """When results are old enough for `baton gc`."""

    days: Annotated[Count, FIXED]
    """Days that a finished run is kept."""
    max_bytes: Annotated[Bytes, FIXED]
    """Size of all kept results together; beyond it the oldest go first."""


class PoolModes(Section):
    """Jobs at once in each mode of a pool."""

    conservative: Annotated[Count, MAX]
    """Small work, or a login with little left."""
    balanced: Annotated[Count, MAX]
    """The usual."""
    large: Annotated[Count, MAX]
    """Many independent jobs; also the most that a project's `orchestration.toml` may ask for."""


class PoolRules(Section):
    """How `baton pool` runs a job file. Flags of the command win over all of it."""

    mode: Annotated[
        Literal["conservative", "balanced", "large"], ordered("large", "balanced", "conservative")
    ]
    """Which of the modes below says how many jobs run at once."""
    modes: PoolModes
    write_concurrency: Annotated[Count, MAX]
    """Writers at once; more than one only with the next key."""
    allow_disjoint_parallel_writers: Annotated[bool, ordered(True, False)]
    """Let writers run at once whose scopes are disjoint; each must declare one."""
    timeout_seconds: Annotated[Seconds, MAX]
    """For one attempt of a job that names no time of its own."""
    total_seconds: Annotated[Seconds, MAX]
    """For one invocation of the command; what is left then is resumed by the next."""
    retries: Annotated[Annotated[int, Field(ge=0, le=100)], MAX]
    """Further attempts of a job that may be run again."""
    backoff_seconds: Annotated[Annotated[float, Field(ge=0, le=3600)], MIN]
    """Before the first of them; doubled for each further one."""
    pause_seconds: Annotated[Seconds, MAX]
    """The longest pause that a limited service is waited for; beyond it the pool stops, resumable."""
    breaker_failures: Annotated[Count, MAX]
    """So many failures of one class in a row stop the pool."""
    token_budget: Annotated[Annotated[int, Field(ge=0, le=10**15)], FIXED]
    """Tokens that one pool may use over all its invocations; 0 sets no limit."""
    backend: Annotated[Literal["app-server", "exec"], ordered("exec", "app-server")]
    """`app-server` attests the effective route; `exec` runs `codex exec`, whose route is only requested."""
    run_root: Annotated[FolderPath, FIXED]
    """Where pools keep their run directories, relative to the project."""


class ConsultAgent(Section):
    """Another agent that may be asked: its command line, its model and what it is good at."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether it may be asked."""
    runtime: Annotated[Literal["codex", "claude", "opencode", "copilot", "antigravity"], FIXED]
    """The command line that asks it."""
    command: Annotated[Word, FIXED]
    """The program, by name or absolute path; empty: the usual name, looked for on PATH."""
    model: Annotated[ModelName, FIXED]
    """Its model, under a name with a version; empty: whatever the command line uses by default."""
    effort: Annotated[Word, FIXED]
    """Its reasoning effort; empty: the command line's default."""
    web_search: Annotated[bool, ordered(True, False)]
    """Whether it may search the web for a question that asks for that."""
    priority: Annotated[Annotated[int, Field(ge=0, le=1000)], FIXED]
    """Decides between agents of equal score: the lower one is asked."""
    scores: Annotated[dict[Capability, Annotated[int, Field(ge=0, le=100)]], FIXED]
    """How good it is at what, 0 to 100; without a score it is never asked for that kind of question."""
    settings: Annotated[dict[str, Any], FIXED]
    """Settings of its command line alone."""


class ConsultSpend(Section):
    """Ceilings of what consulting may cost. 0 sets none. Looked at before anything is sent."""

    max_cost_per_consultation: Annotated[Dollars, FIXED]
    """US dollars of one consultation, as its agents report them, after which it is not followed up."""
    max_turns_per_consultation: Annotated[Annotated[int, Field(ge=0, le=10_000)], FIXED]
    """Questions put to agents in one consultation, follow-ups included."""
    max_cost_per_day: Annotated[Dollars, FIXED]
    """US dollars within 24 hours, as the agents report them."""
    max_turns_per_day: Annotated[Annotated[int, Field(ge=0, le=1_000_000)], FIXED]
    """Questions put to agents within 24 hours; also counts those that report no cost."""


class ConsultRules(Section):
    """Second opinions from other agents on this machine."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether other agents may be asked at all. What is asked goes to their providers."""
    host_model: Annotated[ModelName, FIXED]
    """The model of the session that asks, where its program does not tell; empty: not known."""
    score_margin: Annotated[Annotated[int, Field(ge=0, le=100)], FIXED]
    """Agents within so many points of the best count as equal: their priority decides."""
    max_agents: Annotated[Annotated[int, Field(ge=1, le=10)], MAX]
    """Agents that one call may ask."""
    max_parallel: Annotated[Annotated[int, Field(ge=1, le=64)], MAX]
    """Agents at work at once on this machine, in all sessions together; others wait their turn."""
    timeout_seconds: Annotated[Seconds, MAX]
    """For one answer."""
    idle_seconds: Annotated[Seconds, MAX]
    """Without a sign of life from the command line that is asked."""
    store_full_content: Annotated[bool, ordered(True, False)]
    """Keep questions, material and answers; otherwise their text goes an hour after the answer."""
    context_roots: Annotated[tuple[FolderPath, ...], _LOOSE, AfterValidator(_unique), SUBSET]
    """Folders whose files a call may name as material; `.` is the session's own folder."""
    max_context_bytes: Annotated[Bytes, MAX]
    """Material of one question, text and files together."""
    read_repository: Annotated[bool, ordered(True, False)]
    """Let agents whose command line can be held to reading see the session's folder."""
    pass_to_agents: Annotated[VariableNames, SUBSET]
    """Names of environment variables for their command lines, beside the built-in list."""
    keep_days: Annotated[Count, FIXED]
    """Days that a consultation is kept."""
    personas: Annotated[dict[PersonaName, Instructions], FIXED]
    """Ways to look at a question, by name, as instructions for the agent."""
    spend: ConsultSpend
    agents: Annotated[dict[Name, ConsultAgent], FIXED]
    """Agents by name."""


class ReviewRules(Section):
    """Reviews by other agents, with a checkpoint before anything is sent. They need `[consult]` as well."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether work may be sent to other agents for review."""
    reviewers: Annotated[tuple[Name, ...], _LOOSE, AfterValidator(_unique), FIXED]
    """The agents of a standard review, of which the first that can be asked is; empty: the best score."""
    deep_reviewers: Annotated[tuple[Name, ...], _LOOSE, AfterValidator(_unique), FIXED]
    """The agents of a deep review; empty: the best scores, up to `max_reviewers`."""
    max_reviewers: Annotated[Annotated[int, Field(ge=1, le=5)], MAX]
    """Agents that one review may ask."""
    roots: Annotated[tuple[FolderPath, ...], _LOOSE, AfterValidator(_unique), SUBSET]
    """Folders that material may come from, repositories with all their data; `.` is the session's folder."""
    max_material_bytes: Annotated[Bytes, MAX]
    """Material of one review."""
    checklist: Annotated[tuple[Line, ...], _LOOSE, AfterValidator(_unique), FIXED]
    """Mistakes that every reviewer is told to look for."""
    escalate: Annotated[tuple[Line, ...], _LOOSE, AfterValidator(_unique), SUPERSET]
    """Patterns as in .gitignore: where a standard review touches one, the plan suggests a deep one."""
    confirmation: Annotated[Literal["token", "person"], ordered("token", "person")]
    """`token`: a one-time token where no person can be asked; `person`: only a person's own answer counts."""
    secrets: Annotated[Literal["ask", "refuse"], ordered("ask", "refuse")]
    """Code with what looks like credentials: `ask` sends it when the person agrees, `refuse` never does."""
    max_fix_rounds: Annotated[Annotated[int, Field(ge=0, le=100)], MAX]
    """Rechecks of one review, one after the other."""
    max_turns: Annotated[Annotated[int, Field(ge=1, le=100)], MAX]
    """Questions of one review put to agents, repairs and retries included."""


StepBindings = Annotated[
    dict[Annotated[Step, _LOOSE], Line],
    FIXED,
    Field(description="Who does which step."),
]
"""Who does which step, as `read_binding` takes it."""


class WorkflowSpend(Section):
    """Ceilings of one workflow, looked at before each step that leaves the session. 0 sets none."""

    max_cost_per_workflow: Annotated[Dollars, FIXED]
    """US dollars, as its agents report them."""
    max_turns_per_workflow: Annotated[Annotated[int, Field(ge=0, le=10_000)], FIXED]
    """Questions put to agents, reviewers included, and attempts of isolated workers."""


class WorkflowRules(Section):
    """Whole jobs in phases. They need `[consult]` and `[review]` as well."""

    enabled: Annotated[bool, ordered(True, False)]
    """Whether there are workflows at all."""
    roots: Annotated[tuple[FolderPath, ...], _LOOSE, AfterValidator(_unique), SUBSET]
    """Folders that a workflow's folder must lie in; `.` is the session's own folder."""
    max_fix_rounds: Annotated[Annotated[int, Field(ge=0, le=100)], MAX]
    """Rounds of fixing, after which what is still open needs attention."""
    advance_on_failed_test: Annotated[bool, ordered(True, False)]
    """Have failed work reviewed instead of fixed first; it is never completed while tests fail."""
    different_from_implementer: Annotated[bool, ordered(False, True)]
    """Every reviewer is provably another model than whoever implements or fixes."""
    different_from_planner: Annotated[bool, ordered(False, True)]
    """Every reviewer is provably another model than whoever plans."""
    max_patch_bytes: Annotated[Bytes, MAX]
    """A patch that an agent answers with."""
    tests: Annotated[tuple[Line, ...], _LOOSE, AfterValidator(_unique), FIXED]
    """Commands that Baton runs as tests where a workflow names none."""
    bindings: Annotated[StepBindings, FIXED]
    """Who does which step."""
    presets: Annotated[dict[Name, StepBindings], FIXED]
    """Bindings by name, which a workflow may start with; each names only the steps that it changes."""
    spend: WorkflowSpend


class Policy(Section):
    """Baton's policy. A person's file and a project's name only the keys that they change."""

    root: Root
    routing: Routing
    tiers: Annotated[dict[Name, Tier], Field(min_length=1), FIXED]
    """Tiers by name."""
    roles: Annotated[dict[Name, Role], Field(min_length=1), FIXED]
    """Roles by name."""
    advice: AdviceRules
    escalation: Escalation
    concurrency: Concurrency
    deadlines: Deadlines
    limits: Limits
    environment: Environment
    network: Network
    enforcement: EnforcementRules
    dependencies: Dependencies
    checks: Checks
    retention: Retention
    pool: PoolRules
    consult: ConsultRules
    review: ReviewRules
    workflow: WorkflowRules
    prices: Annotated[dict[Slug, Price], FIXED]
    """Prices by model; a model that is not here has an unknown cost."""

    def role(self, name: str | None) -> tuple[str, Role]:
        """The role of that name, or the default one for None. Raises `InvalidInput` naming the nearest."""
        wanted = self.routing.default_role if name is None else name
        if wanted not in self.roles:
            raise InvalidInput(f"role: no role {wanted!r}; {_advice(wanted, self.roles)}")
        return wanted, self.roles[wanted]

    def tier(self, name: str) -> Tier:
        """The tier of that name. Raises `InvalidInput` naming the nearest."""
        if name not in self.tiers:
            raise InvalidInput(f"tier: no tier {name!r}; {_advice(name, self.tiers)}")
        return self.tiers[name]


def broken_references(policy: Policy) -> list[tuple[tuple[str, ...], str]]:
    """Names in the policy that lead nowhere: the key, and what is expected there."""
    broken: list[tuple[tuple[str, ...], str]] = []
    if policy.routing.default_role not in policy.roles:
        advice = _advice(policy.routing.default_role, policy.roles)
        broken.append((("routing", "default_role"), f"expected the name of a role; {advice}"))
    for name, role in policy.roles.items():
        if role.tier not in policy.tiers:
            advice = _advice(role.tier, policy.tiers)
            broken.append((("roles", name, "tier"), f"expected the name of a tier; {advice}"))
    for tier in policy.escalation.tiers:
        if tier not in policy.tiers:
            advice = _advice(tier, policy.tiers)
            broken.append((("escalation", "tiers"), f"expected names of tiers, got {tier!r}; {advice}"))
    tables: dict[tuple[str, ...], dict[Step, str]] = {("bindings",): policy.workflow.bindings}
    tables |= {("presets", name): table for name, table in policy.workflow.presets.items()}
    for place, table in tables.items():
        for step, text in table.items():
            broken += [
                (("workflow", *place, step.value), fault) for fault in _binding_faults(policy, step, text)
            ]
    return broken


def _binding_faults(policy: Policy, step: Step, text: str) -> list[str]:
    try:
        return [f"expected a name that there is; {fault}" for fault in unknown_names(policy, step, text)]
    except ValueError as fault:
        return [str(fault)]


def unknown_names(policy: Policy, step: Step, text: str) -> list[str]:
    """The names in a binding that are no agent, or no role, each with the nearest that there is.

    Raises `ValueError` for what the step cannot be bound to.
    """
    binding = read_binding(step, text)
    known: dict[str, Any] = policy.roles if binding.executor is Executor.ISOLATED else policy.consult.agents
    what = "role" if binding.executor is Executor.ISOLATED else "agent"
    return [f"no {what} {name!r}: {_advice(name, known)}" for name in binding.names if name not in known]


def _advice(name: str, known: dict[str, Any]) -> str:
    hint = nearest(name, known)
    return f"did you mean {hint!r}?" if hint else "known: " + ", ".join(sorted(known))
