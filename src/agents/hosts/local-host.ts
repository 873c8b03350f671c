import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { AgentRef } from '../../types/agent-ref.js';
import { readGatewayToken } from '../credentials/agent-secrets.js';
import { findAgent } from '../agents/agents.js';
import { askGateway } from './gateway.js';
import { MemoryFullError, MemorySizes } from '../memory/memory-sizes.js';
import { workspaceLocation } from '../memory/workspace-location.js';
import {
  ContainerMissingError,
  DiskLowError,
  DockerRefusedError,
  DockerUnavailableError,
  ForeignContainerError,
  ImageUnavailableError,
  MemoryMissingError,
} from '../../docker/containers/container-errors.js';
import type { LogLine, LogOptions } from '../../docker/containers/container-logs.js';
import type { ContainerStats } from '../../docker/containers/container-view.js';
import { gatewayFailures } from '../../docker/containers/gateway-probe.js';
import type { DockerHost } from '../../docker/containers/docker-host.js';
import type { WorkspaceSpec } from '../../docker/containers/helper-container.js';
import { HelperGoneError } from '../../docker/containers/helper-line.js';
import type { RequestOptions } from '../../docker/containers/workspace-helpers.js';
import type { Database } from '../../platform/database/database.js';
import {
  BadGatewayError,
  ConflictError,
  DockerAwayError,
  ServiceError,
  UnavailableError,
} from '../../lib/errors.js';
import { FairLimiter } from '../../lib/fair-limiter.js';
import { tryParseJson } from '../../lib/json.js';
import type { Allowed } from '../../platform/outbound/reachable.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { NOT_IN_TIME } from '../../workspace/git/push.js';
import { GIT_MS } from '../../workspace/git/run-git.js';
import { runWithDeadline } from '../../workspace/run-with-deadline.js';
import {
  readAnswer,
  isWriting,
  readPushed,
  readRefusal,
  type WorkspaceCall,
  type WorkspaceRefusal,
} from '../../workspace/workspace-call.js';
import { SYNCING, type Pushed } from '../../workspace/workspace.js';
import {
  byAgent,
  type HostAccess,
  type Instance,
  type Instances,
  type Question,
} from './host-access.js';

/** Containers measured concurrently, half of them for one owner; Docker takes a second for each. */
const MEASURED_AT_ONCE = 100;

const PIECE_LENGTH = 256 * 1024;

/** Milliseconds to connect to a gateway. */
const CONNECT_MS = 5_000;

/** Milliseconds for a runtime to list its failing parts. */
const FAILURES_MS = 2_000;

const BROKEN_OFF = 'The push was interrupted: the remote may have the commit';

interface LocalHostParts {
  readonly id: string;
  readonly database: Database;
  readonly docker: DockerHost;
  readonly secrets: SecretBox;
  readonly image: string;
  readonly helper: () => Promise<string>;
  readonly allow: Allowed;
}

/** Access to the agents on the Docker host next to this process. */
export class LocalHost implements HostAccess {
  readonly #parts: LocalHostParts;
  readonly #memorySizes: MemorySizes;
  readonly #measuring = new FairLimiter({ atOnce: MEASURED_AT_ONCE });
  readonly #syncing = new Set<string>();

  constructor(parts: LocalHostParts) {
    this.#parts = parts;
    this.#memorySizes = new MemorySizes(parts.database, parts.docker, parts.image);
  }

  async *ask(
    { agentId, userId }: AgentRef,
    question: Question,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const { database, secrets } = this.#parts;
    const port = await this.#gatewayPort({ agentId, userId });
    const token = await readGatewayToken(database.asUser(userId), secrets, agentId);
    yield* askGateway({ port, token }, question, signal);
  }

  async failures(agent: AgentRef, signal: AbortSignal): Promise<readonly string[] | null> {
    const { database, secrets } = this.#parts;
    const port = await this.#gatewayPort(agent);
    const token = await readGatewayToken(database.asUser(agent.userId), secrets, agent.agentId);
    return (await gatewayFailures(port, { token, signal, timeoutMs: FAILURES_MS })) ?? null;
  }

  async connect(agent: AgentRef): Promise<Socket> {
    const socket = connect({ host: '127.0.0.1', port: await this.#gatewayPort(agent) });
    try {
      await once(socket, 'connect', { signal: AbortSignal.timeout(CONNECT_MS) });
      return socket;
    } catch (cause) {
      socket.destroy();
      throw new BadGatewayError("The agent's gateway cannot be reached", { cause });
    }
  }

  /** @throws ConflictError unless the agent runs on this host */
  async #gatewayPort({ agentId, userId }: Omit<AgentRef, 'host'>): Promise<number> {
    const { database, id } = this.#parts;
    const agent = await findAgent(database.asUser(userId), agentId);
    // On another host this port may belong to another agent, which must see neither message nor token.
    if (agent?.host !== id || agent.status !== 'active' || agent.port === null) {
      throw new ConflictError('The agent is not running', 'AGENT_NOT_RUNNING');
    }
    return agent.port;
  }

  logs(agentId: string, options?: LogOptions): AsyncGenerator<LogLine> {
    return this.#parts.docker.containers.logs(agentId, options);
  }

  async stats(agentId: string): Promise<ContainerStats | null> {
    const { containers } = this.#parts.docker;
    const state = await containers.inspect(agentId);
    if (state?.status !== 'running') return null;
    try {
      return await containers.stats(agentId);
    } catch (error) {
      // The container ended after the inspection.
      if (error instanceof ContainerMissingError) return null;
      throw error;
    }
  }

  async instances({ stats, userId, limit, after }: Instances): Promise<Instance[]> {
    const all = await this.#parts.docker.containers.list();
    const counted = all
      .filter((each) => userId === undefined || each.userId === userId)
      .filter(({ agentId }) => after === undefined || agentId > after)
      .sort(byAgent)
      .slice(0, limit);
    return Promise.all(
      counted.map(async (each) => {
        const isMeasured = stats && each.status === 'running';
        const measure = () => this.stats(each.agentId);
        return {
          ...each,
          stats: isMeasured ? await this.#measuring.run({ owner: each.userId }, measure) : null,
        };
      }),
    );
  }

  async *browse(agent: AgentRef, call: WorkspaceCall, signal: AbortSignal): AsyncGenerator<string> {
    const { limiter } = this.#parts.docker.workspaces;
    const answer = await runWithDeadline(limiter, { owner: agent.userId, signal }, (ending) =>
      this.#browsed(agent, call, ending),
    ).catch((error: unknown) => {
      signal.throwIfAborted();
      const { code, facts, message, status } = refusedBy(error);
      const refused: WorkspaceRefusal = { status, message, code, facts };
      return JSON.stringify({ refused });
    });
    for (let at = 0; at < answer.length; at += PIECE_LENGTH) {
      yield answer.slice(at, at + PIECE_LENGTH);
    }
  }

  async #browsed(agent: AgentRef, call: WorkspaceCall, signal: AbortSignal): Promise<string> {
    const { database, docker, helper, id, image: usual } = this.#parts;
    const { agentId, userId } = agent;
    const placeOf = () => workspaceLocation(database.asUser(userId), { agentId, userId, host: id });
    const { image, volume } = await placeOf();
    if (isWriting(call)) await this.#memorySizes.admitWriting(agent);
    const spec = { agentId, userId, volume, image: image ?? usual };
    const still = async () => {
      const now = await placeOf();
      if (now.volume !== volume)
        throw new ConflictError(
          "The agent's memory was replaced during the call: retry",
          'MEMORY_BUSY',
        );
    };
    const program = await helper();
    const ends = { signal, still };
    return call.what === 'sync'
      ? this.#synced(program, spec, call, ends)
      : docker.workspaces.call(program, spec, call, ends);
  }

  /** Commits the workspace, then pushes over the agent's own network if the workspace has an origin. */
  async #synced(
    program: string,
    spec: WorkspaceSpec,
    call: WorkspaceCall,
    ends: RequestOptions,
  ): Promise<string> {
    const { allow, docker } = this.#parts;
    const { agentId } = spec;
    if (this.#syncing.has(agentId)) throw new ConflictError(SYNCING, 'SYNC_IN_FLIGHT');
    this.#syncing.add(agentId);
    const late = AbortSignal.timeout(GIT_MS);
    try {
      const answer = await docker.workspaces.call(program, spec, call, ends);
      const synced = readAnswer('sync', tryParseJson(answer));
      // A push error at this point means that there is no usable origin.
      const isLeft = synced?.committed === true && synced.pushError === undefined;
      if (!isLeft || synced.hash === null) return answer;
      const commit = { hash: synced.hash, allow: allow.entries };
      const signal = AbortSignal.any([ends.signal, late]);
      const pushed = await docker.workspaces.push(program, spec, commit, { ...ends, signal }).then(
        (line) => pushedBy(tryParseJson(line)),
        (error: unknown) => {
          ends.signal.throwIfAborted();
          return { pushed: false, pushError: late.aborted ? NOT_IN_TIME : whyNotPushed(error) };
        },
      );
      return JSON.stringify({ value: { ...synced, ...pushed } });
    } finally {
      this.#syncing.delete(agentId);
    }
  }
}

function pushedBy(answer: unknown): Pushed {
  const refused = readRefusal(answer);
  if (refused) return { pushed: false, pushError: refused.message };
  return readPushed(answer) ?? { pushed: false, pushError: BROKEN_OFF };
}

/** Returns the reason of a failed push, after which the commit still exists. Rethrows unexpected errors. */
function whyNotPushed(error: unknown): string {
  const isBrokenOff =
    error instanceof HelperGoneError ||
    error instanceof DockerRefusedError ||
    error instanceof ForeignContainerError;
  return isBrokenOff ? BROKEN_OFF : refusedBy(error).message;
}

/** Returns the error for the client. Rethrows unexpected errors. */
function refusedBy(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  if (error instanceof DockerUnavailableError) return new DockerAwayError();
  if (error instanceof MemoryMissingError) {
    return new ConflictError(
      'The agent has no memory to read: start the agent first',
      'MEMORY_MISSING',
    );
  }
  if (error instanceof MemoryFullError) return new ConflictError(error.message, 'MEMORY_FULL');
  if (error instanceof DiskLowError) return new UnavailableError(error.message);
  if (error instanceof ImageUnavailableError) {
    return new UnavailableError("The agent's image is not on its host: start the agent first");
  }
  throw error;
}
