import type { AgentRef } from '../agents/agent-ref.js';
import { readGatewayToken } from '../agents/agent-secrets.js';
import { findAgent } from '../agents/agents.js';
import { askGateway } from '../chat/gateway.js';
import { ContainerMissingError } from '../containers/container-errors.js';
import type { LogLine, LogOptions } from '../containers/container-logs.js';
import type { ContainerStats } from '../containers/container-view.js';
import type { DockerHost } from '../containers/docker-host.js';
import type { Database } from '../database/database.js';
import { ConflictError } from '../errors.js';
import type { SecretBox } from '../secrets/secret-box.js';
import { Turns } from '../turns.js';
import {
  byAgent,
  type HostAccess,
  type Instance,
  type Instances,
  type Question,
} from './host-access.js';

/** Containers that are measured at a time, at most half of them one owner's: each takes Docker a second. */
const MEASURED_AT_ONCE = 100;

interface LocalHostParts {
  readonly id: string;
  readonly database: Database;
  readonly docker: Pick<DockerHost, 'containers'>;
  readonly secrets: SecretBox;
}

/** The agents on the Docker host that this process stands beside. */
export class LocalHost implements HostAccess {
  readonly #parts: LocalHostParts;
  readonly #measuring = new Turns(MEASURED_AT_ONCE);

  constructor(parts: LocalHostParts) {
    this.#parts = parts;
  }

  async *ask(
    { agentId, userId }: AgentRef,
    question: Question,
    signal: AbortSignal,
  ): AsyncGenerator<string> {
    const { database, id, secrets } = this.#parts;
    const tenant = database.asUser(userId);
    const agent = await findAgent(tenant, agentId);
    // On another host the same port is somebody else's agent, who must see neither the message nor
    // the token.
    if (agent?.host !== id || agent.status !== 'active' || agent.port === null) {
      throw new ConflictError('The agent is not running');
    }
    const gateway = { port: agent.port, token: await readGatewayToken(tenant, secrets, agentId) };
    yield* askGateway(gateway, question, signal);
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
      // It ended in between.
      if (error instanceof ContainerMissingError) return null;
      throw error;
    }
  }

  async instances({ stats, userId, limit, after }: Instances): Promise<Instance[]> {
    const all = await this.#parts.docker.containers.list();
    const asked = all
      .filter((each) => userId === undefined || each.userId === userId)
      .filter(({ agentId }) => after === undefined || agentId > after)
      .sort(byAgent)
      .slice(0, limit);
    return Promise.all(
      asked.map(async (each) => {
        const isMeasured = stats && each.status === 'running';
        const measure = () => this.stats(each.agentId);
        return {
          ...each,
          stats: isMeasured
            ? await this.#measuring.run({ owner: each.userId, isUrgent: true }, measure)
            : null,
        };
      }),
    );
  }
}
