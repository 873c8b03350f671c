import type { MemorySpec } from '../../docker/containers/agent-volumes.js';
import { channelsOf } from '../../docker/containers/openclaw-channels.js';
import type { AgentContainerSpec } from '../../docker/containers/container-spec.js';
import {
  CONFIG_FILE,
  openClawConfig,
  openClawEnvironment,
  openClawSecrets,
} from '../../docker/containers/openclaw-config.js';
import type { Database, TenantTransaction } from '../../platform/database/database.js';
import type { AgentRow } from '../../platform/database/models.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import {
  credentialNames,
  readCredentials,
  secretsToRedact,
} from '../credentials/agent-credentials.js';
import type { Gateway } from '../watchdog/await-ready.js';
import { portsWithin, subnetOf, type PortRange } from '../agents/agent-subnet.js';
import { skillTexts } from '../skills/installed-skills.js';
import type { AgentRef } from '../../types/agent-ref.js';
import { endVerifications } from './end-verifications.js';
import { AgentGoneError, presentAgent, updateAgent } from '../agents/agents.js';
import type { AgentModelSizes } from '../model/agent-model-sizes.js';
import { secretContext, type AgentSecretKind } from '../credentials/agent-secrets.js';

/** The only model name in an agent's runtime; the AI listener chooses the real model. */
export const AGENT_MODEL = 'auto';

export interface ContainerSpecsOptions {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly image: string;
  readonly ports: { readonly first: number };
  readonly subnetPool: string;
  /** Address of the AI listener for containers, such as `http://host.docker.internal:3002/v1`. */
  readonly aiBaseUrl: string;
  readonly modelSizes: Pick<AgentModelSizes, 'of'>;
}

/** An agent's data for its container. Secrets are decrypted only here. */
export class ContainerSpecs {
  readonly #options: ContainerSpecsOptions;

  constructor(options: ContainerSpecsOptions) {
    this.#options = options;
  }

  /** Returns the specification of the agent's container. @throws AgentGoneError */
  async specOf(agent: AgentRef): Promise<AgentContainerSpec> {
    const { database, secrets } = this.#options;
    const tenant = database.asUser(agent.userId);
    const [{ row, gatewayToken, aiToken }, credentials] = await Promise.all([
      this.#read(agent),
      readCredentials(tenant, secrets, agent.agentId),
    ]);
    if (row.port === null) throw new AgentGoneError(agent.agentId);
    const sizes = await this.#options.modelSizes.of(tenant, row);
    return {
      agentId: row.id,
      userId: row.userId,
      image: row.image ?? this.#options.image,
      volume: row.volume ?? undefined,
      port: row.port,
      subnet: subnetOf(row.port, this.#options.ports.first, this.#options.subnetPool),
      env: openClawEnvironment(),
      secrets: { ...credentials, ...openClawSecrets({ gatewayToken, aiToken }) },
      files: {
        [CONFIG_FILE]: openClawConfig({
          aiBaseUrl: this.#options.aiBaseUrl,
          model: AGENT_MODEL,
          sizes,
          userConfig: row.config.runtime,
          variables: new Set(Object.keys(credentials)),
        }),
      },
    };
  }

  /** Returns the texts of the agent's installed skills, by name. */
  skillsOf({ agentId, userId }: AgentRef): Promise<Record<string, string>> {
    return skillTexts(this.#options.database.asUser(userId), agentId);
  }

  /** Returns the volume of the agent's memory. @throws AgentGoneError */
  async memoryOf(agent: AgentRef): Promise<MemorySpec> {
    const { id, volume } = await this.#as(agent, (db) => this.#find(db, agent));
    return { agentId: id, volume: volume ?? undefined };
  }

  /** Returns the image that the agent runs. @throws AgentGoneError */
  async imageOf(agent: AgentRef): Promise<string> {
    const { image } = await this.#as(agent, (db) => this.#find(db, agent));
    return image ?? this.#options.image;
  }

  async gatewayOf(agent: AgentRef): Promise<Omit<Gateway, 'signal'>> {
    const [{ row, gatewayToken }, names] = await Promise.all([
      this.#read(agent),
      credentialNames(this.#options.database.asUser(agent.userId), agent.agentId),
    ]);
    if (row.port === null) throw new AgentGoneError(agent.agentId);
    const hasChannels = channelsOf(row.config.runtime, names).length > 0;
    return { port: row.port, gatewayToken, hasChannels };
  }

  placesIn(subnets: readonly string[]): PortRange[] {
    return portsWithin(subnets, this.#options.ports.first, this.#options.subnetPool);
  }

  async recordImage(agent: AgentRef, image: string, version: string | undefined): Promise<void> {
    await this.#update(agent, { image, runtimeVersion: version ?? null });
  }

  async recordContainer(agent: AgentRef, containerId: string): Promise<void> {
    await this.#as(agent, async (db) => {
      const { containerId: before } = await this.#find(db, agent);
      if (before === containerId) return;
      // The container was made for a start, because the old one was missing or of another specification.
      if (before !== null) await endVerifications(db, agent.agentId, 'all');
      await updateAgent(db, agent.agentId, { containerId });
    });
  }

  secretsToRedact(agent: AgentRef): Promise<string[]> {
    const { database, secrets } = this.#options;
    return secretsToRedact(database.asUser(agent.userId), secrets, agent.agentId);
  }

  async #read(agent: AgentRef) {
    return this.#as(agent, async (db) => {
      const row = await this.#find(db, agent);
      const sealed = await db.AgentSecret.findAll({ where: { agentId: agent.agentId } });
      const open = (kind: AgentSecretKind): string => {
        const secret = sealed.find((candidate) => candidate.kind === kind);
        if (!secret) throw new AgentGoneError(agent.agentId);
        return this.#options.secrets.open(secret.sealed, secretContext(agent.agentId, kind));
      };
      return { row, gatewayToken: open('gateway-token'), aiToken: open('ai-token') };
    });
  }

  async #find(db: TenantTransaction, agent: AgentRef): Promise<AgentRow> {
    const row = await presentAgent(db, agent.agentId);
    if (!row) throw new AgentGoneError(agent.agentId);
    return row;
  }

  async #update(agent: AgentRef, values: Partial<AgentRow>): Promise<void> {
    await this.#as(agent, (db) => updateAgent(db, agent.agentId, values));
  }

  #as<T>(agent: AgentRef, work: (db: TenantTransaction) => Promise<T>): Promise<T> {
    return this.#options.database.asUser(agent.userId).transaction(work);
  }
}
