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
  integer,
  json,
  key,
  nullable,
  serial,
  table,
  text,
  timestamp,
  updated,
  withDefault,
} from '../schema/table.js';

/** What the owner wants of an agent. */
export type DesiredState = 'running' | 'stopped' | 'deleted';

/** What was last observed of an agent. */
export type AgentStatus = 'pending' | 'active' | 'stopped' | 'error';

/** What an agent was before the replacement that is under way, and is again if that fails. */
export interface PreviousRelease {
  /** The operation that replaces it. */
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
    /** Why the status is `error`, or why the platform has stopped it, in words for the owner. */
    statusReason: nullable(text()),
    observedAt: nullable(timestamp()),
    startedAt: nullable(timestamp()),
    /** The Docker host that runs the agent. */
    host: withDefault(text(), 'local'),
    /** The loopback port on that host, reserved from before the container is until after it. */
    port: nullable(integer()),
    image: nullable(text()),
    runtimeVersion: nullable(text()),
    containerId: nullable(text()),
    /** The volume that holds its memory; null for one that is named like the container. */
    volume: nullable(text()),
    /** Set while it is being replaced. */
    previousRelease: nullable(json<PreviousRelease>()),
    /** The image that it could not be updated to last. */
    failedImage: nullable(text()),
    /** Null until it ran for the first time. */
    watchdog: nullable(json<WatchdogMemory>()),
    parentAgentId: nullable(text()),
    generation: withDefault(integer(), 1),
    verified: withDefault(boolean(), false),
    verificationType: nullable(text()),
    attestationUid: nullable(text()),
    verifiedAt: nullable(timestamp()),
    createdAt: created(),
    updatedAt: updated(),
    /** Set when the removal is complete. Lists leave an agent out as soon as deletion is desired. */
    deletedAt: nullable(timestamp()),
  },
  [
    {
      name: 'agents_host_port_key',
      unique: true,
      fields: ['host', 'port'],
      where: { port: { [Op.ne]: null } },
    },
    {
      name: 'agents_user_name_key',
      unique: true,
      fields: ['user_id', 'name'],
      where: { desired: { [Op.ne]: 'deleted' } },
    },
    {
      name: 'agents_subdomain_key',
      unique: true,
      fields: ['subdomain'],
      where: { deleted_at: null },
    },
    // What belongs to an agent refers to (id, user_id), so that it cannot be another user's.
    { name: 'agents_id_user_key', unique: true, fields: ['id', 'user_id'] },
    { name: 'agents_user_created', fields: ['user_id', 'created_at', 'id'] },
    { name: 'agents_parent', fields: ['parent_agent_id'] },
    { name: 'agents_host_present', fields: ['host'], where: { deleted_at: null } },
    {
      name: 'agents_being_removed',
      fields: ['id'],
      where: { desired: 'deleted', deleted_at: null },
    },
    {
      name: 'agents_deleted',
      fields: ['deleted_at'],
      where: { deleted_at: { [Op.ne]: null } },
    },
  ],
  ownedThrough('user_id'),
);

export const AgentSecret = table(
  'agent_secrets',
  {
    agentId: key(text()),
    kind: key(text<'gateway-token' | 'ai-token'>()),
    userId: text(),
    /** Sealed by `SecretBox`. */
    sealed: text(),
    /** SHA-256 in hex of a secret by which callers are found; null for the others. */
    lookupHash: nullable(text()),
  },
  [{ name: 'agent_secrets_lookup_key', unique: true, fields: ['lookup_hash'] }],
  ownedThrough('user_id'),
);

/** Versions of the credentials that agents' tools are given. */
export const AgentCredential = table(
  'agent_credentials',
  {
    /** The operation that brings this version. */
    operationId: key(text()),
    agentId: text(),
    userId: text(),
    /** The environment variable. */
    name: text(),
    /** The value, sealed by `SecretBox`; null for a version that takes the credential away. */
    sealed: nullable(text()),
    /**
     * `requested` until its operation begins, then `present`; what it replaced is `previous` until
     * that operation has ended.
     */
    state: text<'requested' | 'present' | 'previous'>(),
    updatedAt: timestamp(),
  },
  [
    { name: 'agent_credentials_agent', fields: ['agent_id'] },
    {
      name: 'agent_credentials_present_key',
      unique: true,
      fields: ['agent_id', 'name'],
      where: { state: 'present' },
    },
  ],
  ownedThrough('user_id'),
);

export interface OperationInput {
  readonly plan?: Plan;
  readonly aiProvider?: string;
  readonly model?: string;
  /** A skill that a `configure` changes, without its settings. */
  readonly skill?: Omit<SkillChange, 'config'>;
  /** Configurations, which may hold secrets, until the operation ends (src/agents/operations/operation-input.ts). */
  readonly sealed?: string;
  /** By which two that bring the same configuration are known. */
  readonly digest?: string;
  /** A credential that a `configure` changes: its version is in `agent_credentials`. */
  readonly credential?: { readonly name: string; readonly version: string };
  /** The image of an `update`. */
  readonly image?: string;
  /** The archive of a `restore`. */
  readonly archiveId?: string;
  /** Why the platform itself asks for a `stop`, in words for the owner. */
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
    /** What it brings. A `configure` sets columns of the agent when it begins. */
    input: nullable(json<OperationInput>()),
    error: nullable(text()),
    runId: nullable(text()),
    /** Who asked for it, and by which request. */
    requestedBy: nullable(text()),
    requestId: nullable(text()),
    /** All times of an operation are the database's, because they are compared. */
    requestedAt: withDefault(timestamp(), Sequelize.literal('now()')),
    /** When a worker last made sure that somebody is about it. */
    lookedAt: withDefault(timestamp(), Sequelize.literal('now()')),
    /** When its supervisor had it, just before whoever asked was told so. It is not taken back any more. */
    admittedAt: nullable(timestamp()),
    finishedAt: nullable(timestamp()),
  },
  [
    { name: 'operations_open', fields: ['looked_at'], where: { finished_at: null } },
    {
      name: 'operations_agent_requested',
      fields: ['agent_id', { name: 'requested_at', order: 'DESC' }],
    },
    {
      name: 'operations_finished',
      fields: ['finished_at'],
      where: { kind: { [Op.ne]: 'provision' } },
    },
  ],
  ownedThrough('user_id'),
);

/** Memories that agents had before they were reset, or another one was restored. */
export const AgentArchive = table(
  'agent_archives',
  {
    /** That of the operation that put it away. */
    id: key(text()),
    agentId: text(),
    userId: text(),
    /** The volume on the agent's host that holds it. */
    volume: text(),
    reason: text<'reset-memory' | 'restore'>(),
    createdAt: timestamp(),
  },
  [
    {
      name: 'agent_archives_agent_created',
      fields: ['agent_id', { name: 'created_at', order: 'DESC' }],
    },
  ],
  ownedThrough('user_id'),
);

/** The volumes that operations have made for an agent. What is not named here is never removed. */
export const AgentVolume = table(
  'agent_volumes',
  {
    name: key(text()),
    agentId: text(),
    userId: text(),
    /** What has made it, as the volume's own label says. */
    madeBy: text(),
    /** Nobody uses it any more, and it is to be removed. */
    obsolete: withDefault(boolean(), false),
    /** What it took of the disk when it was measured last; null until then. */
    bytes: nullable(bigint()),
    /** Files, folders and all else in it that has a name. */
    files: nullable(bigint()),
    /** When that was tried last. */
    measuredAt: nullable(timestamp()),
    /** Since when people know that it is filling. */
    toldAt: nullable(timestamp()),
    /** When the explorer was last asked to write to it. */
    writtenAt: nullable(timestamp()),
    createdAt: timestamp(),
  },
  [{ name: 'agent_volumes_agent', fields: ['agent_id'] }],
  ownedThrough('user_id'),
);

/** What is kept of a crash. */
export interface CrashRecord {
  /** Null when the container is gone. */
  readonly exitCode: number | null;
  readonly oomKilled: boolean;
  /** The last lines of its log, without the agent's tokens. */
  readonly lastLines: readonly string[];
}

/** Every change of an agent's watchdog state. */
export const WatchdogTransition = table(
  'watchdog_transitions',
  {
    /** Made by the workflow, so that writing it twice writes it once. */
    id: key(text()),
    agentId: text(),
    userId: text(),
    fromState: text<WatchdogState>(),
    toState: text<WatchdogState>(),
    cause: text<WatchdogCause>(),
    /** In words for people. */
    reason: nullable(text()),
    crash: nullable(json<CrashRecord>()),
    at: timestamp(),
  },
  [
    {
      name: 'watchdog_transitions_agent_at',
      fields: ['agent_id', { name: 'at', order: 'DESC' }],
    },
    { name: 'watchdog_transitions_at', fields: ['at'] },
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
    /** The order of messages. */
    position: serial(),
    createdAt: created(),
  },
  [
    {
      name: 'messages_conversation_position',
      fields: ['agent_id', 'conversation', 'position'],
    },
    { name: 'messages_created', fields: ['created_at'] },
  ],
  ownedThrough('user_id'),
);
