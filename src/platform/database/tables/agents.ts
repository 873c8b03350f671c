import { Op, Sequelize } from 'sequelize';
import type { Plan } from '../../../types/plans.js';
import type { SkillChange } from '../../../types/skill-change.js';
import type { OperationKind, OperationStatus } from '../../../types/operation-kinds.js';
import type { WatchdogCause, WatchdogMemory, WatchdogState } from '../../../types/watchdog.js';
import { ownedThrough } from '../schema/policies.js';
import {
  bigint,
  boolean,
  created,
  index,
  integer,
  json,
  key,
  nullable,
  serial,
  table,
  text,
  timestamp,
  unique,
  updated,
  withDefault,
} from '../schema/table.js';

/** The agent's desired state, set by its owner. */
export type DesiredState = 'running' | 'stopped' | 'deleted';

/** The agent's last observed state. */
export type AgentStatus = 'pending' | 'active' | 'stopped' | 'error';

/** The agent's release before the replacement in progress, restored if that fails. */
export interface PreviousRelease {
  /** The operation that replaces the release. */
  readonly operationId: string;
  readonly image: string | null;
  readonly runtimeVersion: string | null;
  readonly volume: string | null;
  readonly plan: Plan;
  readonly aiProvider: string;
  readonly model: string;
  readonly config: Record<string, unknown>;
}

export const Agent = table(
  'agents',
  {
    id: key(text()),
    userId: text(),
    name: text(),
    subdomain: text(),
    plan: text<Plan>(),
    model: text(),
    aiProvider: text(),
    config: withDefault(json<Record<string, unknown>>(), {}),
    desired: withDefault(text<DesiredState>(), 'running'),
    status: withDefault(text<AgentStatus>(), 'pending'),
    /** Reason for the status `error`, or for a stop by the platform, as shown to the owner. */
    statusReason: nullable(text()),
    observedAt: nullable(timestamp()),
    startedAt: nullable(timestamp()),
    /** Docker host of the agent. */
    host: withDefault(text(), 'local'),
    /** Loopback port on the host, reserved before the container is created and until after its removal. */
    port: nullable(integer()),
    image: nullable(text()),
    runtimeVersion: nullable(text()),
    containerId: nullable(text()),
    /** Volume with the agent's memory; null if it has the container's name. */
    volume: nullable(text()),
    /** Set during a replacement. */
    previousRelease: nullable(json<PreviousRelease>()),
    failedImage: nullable(text()),
    /** Null until the agent's first run. */
    watchdog: nullable(json<WatchdogMemory>()),
    parentAgentId: nullable(text()),
    generation: withDefault(integer(), 1),
    verified: withDefault(boolean(), false),
    verificationType: nullable(text()),
    attestationUid: nullable(text()),
    verifiedAt: nullable(timestamp()),
    createdAt: created(),
    updatedAt: updated(),
    /** Set when the removal is complete. Lists omit an agent as soon as its deletion is requested. */
    deletedAt: nullable(timestamp()),
  },
  [
    unique('agents_host_port_key', ['host', 'port'], { port: { [Op.ne]: null } }),
    unique('agents_user_name_key', ['user_id', 'name'], { desired: { [Op.ne]: 'deleted' } }),
    unique('agents_subdomain_key', ['subdomain'], { deleted_at: null }),
    // Rows of an agent refer to (id, user_id), so that they cannot belong to another user.
    unique('agents_id_user_key', ['id', 'user_id']),
    index('agents_user_created', ['user_id', 'created_at', 'id']),
    index('agents_parent', ['parent_agent_id']),
    index('agents_host_present', ['host'], { deleted_at: null }),
    index('agents_being_removed', ['id'], { desired: 'deleted', deleted_at: null }),
    index('agents_deleted', ['deleted_at'], { deleted_at: { [Op.ne]: null } }),
  ],
  ownedThrough('user_id'),
);

export const AgentSecret = table(
  'agent_secrets',
  {
    agentId: key(text()),
    kind: key(text<'gateway-token' | 'ai-token'>()),
    userId: text(),
    /** Value sealed by `SecretBox`. */
    sealed: text(),
    /** SHA-256 in hex of a secret that identifies callers; null for other secrets. */
    lookupHash: nullable(text()),
  },
  [unique('agent_secrets_lookup_key', ['lookup_hash'])],
  ownedThrough('user_id'),
);

/** Versions of the credentials of agents' tools. */
export const AgentCredential = table(
  'agent_credentials',
  {
    /** Id of the operation that introduces this version; a new id for the version at the agent's creation. */
    operationId: key(text()),
    agentId: text(),
    userId: text(),
    /** Name of the environment variable. */
    name: text(),
    /** Value sealed by `SecretBox`; null for a version that removes the credential. */
    sealed: nullable(text()),
    /** `present` once the operation has begun, which makes the replaced version `previous` until its end. */
    state: text<'requested' | 'present' | 'previous'>(),
    updatedAt: timestamp(),
  },
  [
    index('agent_credentials_agent', ['agent_id']),
    unique('agent_credentials_present_key', ['agent_id', 'name'], { state: 'present' }),
  ],
  ownedThrough('user_id'),
);

export interface OperationInput {
  readonly plan?: Plan;
  readonly aiProvider?: string;
  readonly model?: string;
  /** Skill that a `configure` changes, without its settings. */
  readonly skill?: Omit<SkillChange, 'config'>;
  /** Skill that a `configure` installs, or removes without a version; its text is in `agent_skills`. */
  readonly install?: {
    readonly name: string;
    readonly skillId: string | null;
    readonly version: number | null;
  };
  /** Maximum number of enabled skills when the change was requested; none for administrators. */
  readonly skillLimit?: number;
  /** Configurations, which may hold secrets, until the operation ends (src/agents/operations/operation-input.ts). */
  readonly sealed?: string;
  /** Digest that identifies operations with the same configuration. */
  readonly digest?: string;
  /** Credential that a `configure` changes; its version is in `agent_credentials`. */
  readonly credential?: { readonly name: string; readonly version: string };
  /** Image of an `update`. */
  readonly image?: string;
  /** Archive of a `restore`. */
  readonly archiveId?: string;
  /** Reason why the platform requests a `stop`, as shown to the owner. */
  readonly reason?: string;
}

export const Operation = table(
  'operations',
  {
    id: key(text()),
    agentId: text(),
    userId: text(),
    kind: text<OperationKind>(),
    status: withDefault(text<OperationStatus>(), 'requested'),
    /** Input of the operation. A `configure` writes it to the agent's columns when it begins. */
    input: nullable(json<OperationInput>()),
    error: nullable(text()),
    runId: nullable(text()),
    requestedBy: nullable(text()),
    requestId: nullable(text()),
    /** Times of operations are compared, so all are taken from the database's clock. */
    requestedAt: withDefault(timestamp(), Sequelize.literal('now()')),
    /** Time when a worker last checked that the operation is in progress. */
    lookedAt: withDefault(timestamp(), Sequelize.literal('now()')),
    /** Time when the supervisor admitted the operation, which cannot be withdrawn afterwards. */
    admittedAt: nullable(timestamp()),
    finishedAt: nullable(timestamp()),
  },
  [
    index('operations_open', ['looked_at'], { finished_at: null }),
    index('operations_agent_requested', ['agent_id', { name: 'requested_at', order: 'DESC' }]),
    index('operations_user_requested', ['user_id', 'requested_at', 'id']),
    index('operations_provisions', ['user_id', 'finished_at'], { kind: 'provision' }),
    index('operations_finished', ['finished_at'], { kind: { [Op.ne]: 'provision' } }),
  ],
  ownedThrough('user_id'),
);

/** Memories that were replaced by a reset or a restore. */
export const AgentArchive = table(
  'agent_archives',
  {
    /** Id of the operation that archived the memory. */
    id: key(text()),
    agentId: text(),
    userId: text(),
    /** Volume on the agent's host that holds the archive. */
    volume: text(),
    reason: text<'reset-memory' | 'restore'>(),
    createdAt: timestamp(),
  },
  [index('agent_archives_agent_created', ['agent_id', { name: 'created_at', order: 'DESC' }])],
  ownedThrough('user_id'),
);

/** Volumes that operations created for an agent. A volume missing here is never removed. */
export const AgentVolume = table(
  'agent_volumes',
  {
    name: key(text()),
    agentId: text(),
    userId: text(),
    /** Creator of the volume, as in its label. */
    madeBy: text(),
    /** True if the volume is unused and must be removed. */
    obsolete: withDefault(boolean(), false),
    /** Disk space in bytes when last measured; null until then. */
    bytes: nullable(bigint()),
    /** Number of files, folders and other named entries. */
    files: nullable(bigint()),
    /** Time when a measurement was last attempted. */
    measuredAt: nullable(timestamp()),
    /** Time when users were notified that the volume is filling up. */
    notifiedAt: nullable(timestamp()),
    /** Time when the file explorer last requested a write. */
    writtenAt: nullable(timestamp()),
    createdAt: timestamp(),
  },
  [index('agent_volumes_agent', ['agent_id'])],
  ownedThrough('user_id'),
);

/** Stored details of a crash. */
export interface CrashRecord {
  /** Null if the container no longer exists. */
  readonly exitCode: number | null;
  readonly oomKilled: boolean;
  /** Last lines of the container's log, without the agent's tokens. */
  readonly lastLines: readonly string[];
}

export const WatchdogTransition = table(
  'watchdog_transitions',
  {
    /** Id generated by the workflow, which makes inserts idempotent. */
    id: key(text()),
    agentId: text(),
    userId: text(),
    fromState: text<WatchdogState>(),
    toState: text<WatchdogState>(),
    cause: text<WatchdogCause>(),
    /** Reason as shown to users. */
    reason: nullable(text()),
    crash: nullable(json<CrashRecord>()),
    at: timestamp(),
  },
  [
    index('watchdog_transitions_agent_at', ['agent_id', { name: 'at', order: 'DESC' }]),
    index('watchdog_transitions_at', ['at']),
  ],
  ownedThrough('user_id'),
);

export const Message = table(
  'messages',
  {
    id: key(text()),
    agentId: text(),
    userId: text(),
    conversation: text(),
    role: text<'user' | 'assistant'>(),
    content: text(),
    status: withDefault(text<'complete' | 'failed'>(), 'complete'),
    /** Order of the messages. */
    position: serial(),
    createdAt: created(),
    /** Milliseconds from the question to the end of its answer; null for questions. */
    tookMs: nullable(integer()),
  },
  [
    index('messages_answers', ['agent_id', 'created_at', 'status', 'took_ms', 'user_id'], {
      role: 'assistant',
    }),
    index('messages_conversation_position', ['agent_id', 'conversation', 'position']),
    index('messages_created', ['created_at']),
  ],
  ownedThrough('user_id'),
);
