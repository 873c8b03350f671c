import { channelsOf, REPORTED_CHANNELS } from '../../docker/containers/openclaw-channels.js';
import { ContainerError } from '../../docker/containers/container-errors.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import { ServiceError } from '../../lib/errors.js';
import { credentialNames } from '../credentials/agent-credentials.js';
import type { HostDirectory } from '../hosts/host-directory.js';

/** Milliseconds that a reader waits for the runtime. */
const MEASURE_MS = 3_000;

/** A channel's state; `ok` is null if the runtime was not queried or did not report it. */
export interface ChannelState {
  readonly name: string;
  readonly ok: boolean | null;
  readonly reason: string | null;
}

const NOT_RUNNING = 'The agent is not running';
const SILENT = "The agent's runtime did not report the state of its channels";
const NOT_REPORTED = "The agent's runtime reports this channel only if it fails";
const FAILING = 'The runtime cannot use the channel: check its token and its settings';

/** The channels of agents, as their runtimes report them. */
export class ChannelStates {
  readonly #directory: Pick<HostDirectory, 'accessTo'>;

  constructor(directory: Pick<HostDirectory, 'accessTo'>) {
    this.#directory = directory;
  }

  /** Measures the channels of an agent's configuration. A host that does not answer is part of the result. */
  async of(
    tenant: TenantDatabase,
    agent: Pick<AgentRow, 'id' | 'userId' | 'host' | 'status' | 'config'>,
    signal: AbortSignal,
  ): Promise<ChannelState[]> {
    const names = channelsOf(agent.config.runtime, await credentialNames(tenant, agent.id));
    if (names.length === 0) return [];
    if (agent.status !== 'active') return names.map((name) => unknown(name, NOT_RUNNING));
    const failing = await this.#failing(agent, signal);
    // Any other failing part keeps the runtime from checking its channels.
    const isSilent = !failing || failing.some((part) => !names.includes(part));
    if (isSilent) return names.map((name) => unknown(name, SILENT));
    return names.map((name) => {
      if (failing.includes(name)) return { name, ok: false, reason: FAILING };
      return REPORTED_CHANNELS.has(name)
        ? { name, ok: true, reason: null }
        : unknown(name, NOT_REPORTED);
    });
  }

  async #failing(
    { host, id: agentId, userId }: Pick<AgentRow, 'id' | 'userId' | 'host'>,
    signal: AbortSignal,
  ): Promise<readonly string[] | null> {
    const late = AbortSignal.timeout(MEASURE_MS);
    try {
      const access = await this.#directory.accessTo(host);
      return await access.failures({ agentId, userId, host }, AbortSignal.any([signal, late]));
    } catch (error) {
      signal.throwIfAborted();
      const isSilent =
        late.aborted || error instanceof ServiceError || error instanceof ContainerError;
      if (!isSilent) throw error;
      return null;
    }
  }
}

const unknown = (name: string, reason: string): ChannelState => ({ name, ok: null, reason });
