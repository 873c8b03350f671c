import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { AdminRules } from '../../accounts/accounts/admin.js';
import { findEntitlement, type Entitlement } from '../../accounts/accounts/entitlement.js';
import { planRequired, requirePlan } from '../../types/plans.js';
import { OPERATOR_USER_ID } from '../../types/operator-user.js';
import type { ProviderName } from '../../ai/completion/provider-names.js';
import type { Requester } from '../../platform/audit/requester.js';
import { type RuntimeImageNames, versionOf } from '../../docker/containers/image-name.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { AgentRow, OperationRow } from '../../platform/database/models.js';
import { isUnpaidClone } from '../operations/unpaid-clone.js';
import { BadRequestError, ConflictError, UnavailableError } from '../../lib/errors.js';
import type { HostEngines } from '../hosts/host-engines.js';
import { isHostGone } from '../hosts/hosts.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { agentConfig } from '../model/agent-config.js';
import { sealCredential, type CredentialChange } from '../credentials/agent-credentials.js';
import { choiceOf, requireOwnModel, wantedModel } from '../model/agent-model.js';
import { checkSkillLimit, withSkill } from '../model/agent-skills.js';
import type { SkillChange } from '../../types/skill-change.js';
import { findAgent, getAgent } from '../agents/agents.js';
import { getArchive } from '../memory/archives.js';
import { requestedModel } from '../model/models.js';
import { isSameInput, sealInput, type RequestedInput } from '../operations/operation-input.js';
import { operationRules, type PlainKind, type RequestedKind } from '../../types/operation-kinds.js';
import { HostGoneError, removeLostAgent } from '../operations/lost-agent.js';
import {
  admitOperation,
  joinOperation,
  requestOperation,
  waitUntilBegun,
  withdrawOperation,
} from '../operations/operations.js';
import {
  supervisedOf,
  type AgentSupervisors,
  type RequestedOperation,
} from '../operations/supervisors.js';

/** How often a request is put to a supervisor that keeps on naming others which are then taken back. */
const MAX_ATTEMPTS = 3;

/** What is done to an agent that is there. */
type Kind = RequestedKind;

/** An operation that an agent's supervisor has admitted. */
export interface Admitted extends RequestedOperation {
  readonly agent: AgentRow;
  readonly kind: Kind;
}

interface Change {
  readonly input?: RequestedInput;
  readonly credential?: CredentialChange;
}

export interface AgentOperationParts {
  readonly supervisors: AgentSupervisors;
  readonly engines: Pick<HostEngines, 'require'>;
  readonly secrets: SecretBox;
  readonly images: RuntimeImageNames;
  /** Serves the models that nobody serves in particular. */
  readonly aiProvider: ProviderName;
  readonly accounts: AdminRules;
  readonly log: Logger;
}

/**
 * What can be done to an agent. Every operation finds its agent first (NotFoundError), then judges what
 * is asked (BadRequestError), then asks for its host's Docker (DockerAwayError), and only then is written down and
 * admitted by the agent's supervisor. ConflictError while another operation runs, or when the agent's
 * host is gone for good, UnavailableError when Temporal cannot be reached.
 */
export class AgentOperations {
  readonly #parts: AgentOperationParts;

  constructor(parts: AgentOperationParts) {
    this.#parts = parts;
  }

  /**
   * Does what needs no more than its name.
   *
   * @throws PaymentRequiredError where an agent is to run whose owner has no plan any more; only the
   *   operator may have it run.
   */
  async run(by: Requester, agentId: string, kind: PlainKind): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const isToRun = operationRules(kind).desired === 'running';
    if (isToRun && by.actor !== OPERATOR_USER_ID && !(await this.#entitlement(by, agent))) {
      throw planRequired();
    }
    return this.#operate(by, agent, kind);
  }

  /**
   * Changes plan, provider or configuration; what is left out stays. Where all of it is, there is nothing to
   * do, and `isAsked` is false.
   *
   * @throws ModelRestrictedError, or PaymentRequiredError, for more than the owner's plan has.
   */
  async configure(
    by: Requester,
    agentId: string,
    change: {
      readonly plan?: string | undefined;
      readonly aiProvider?: string | undefined;
      readonly config?: Record<string, unknown> | undefined;
    },
  ) {
    const agent = await getAgent(by.tenant, agentId);
    const plan = requirePlan(change.plan ?? agent.plan);
    const { aiProvider } = requestedModel(
      { model: agent.model, aiProvider: change.aiProvider ?? agent.aiProvider },
      this.#parts.aiProvider,
    );
    const { config } = change;
    const isAsked = Object.values(change).some((each) => each !== undefined);
    if (!isAsked) return { agent, run: undefined, plan, aiProvider, isAsked };
    await this.#judge(by, agent, { ...agent, aiProvider, config: config ?? agent.config });
    const input = { plan, aiProvider, ...(config && { config }) };
    return {
      ...(await this.#operate(by, agent, 'configure', { input })),
      plan,
      aiProvider,
      isAsked,
    };
  }

  async changeSkill(by: Requester, agentId: string, skill: SkillChange): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const config = withSkill(agent.config, skill);
    const { error } = agentConfig.safeParse(config);
    if (error) throw new BadRequestError(error.issues[0]?.message ?? 'config is not valid');
    await this.#judge(by, agent, { ...agent, config });
    return this.#operate(by, agent, 'configure', { input: { skill } });
  }

  /** @param value null takes the credential away. */
  async changeCredential(
    by: Requester,
    agentId: string,
    name: string,
    value: string | null,
  ): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    return this.#operate(by, agent, 'configure', {
      // Two changes of one credential are never the same one, whatever their sealed values are.
      input: { credential: { name, version: by.idempotencyId } },
      credential: sealCredential(this.#parts.secrets, agent.id, { name, value }),
    });
  }

  /**
   * @param version one of those that the operator allows; without one it is what new agents run.
   * @throws BadRequestError for any other.
   */
  async update(by: Requester, agentId: string, version: string | undefined): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const { usual, versions } = this.#parts.images;
    const image = version === undefined ? usual : versions.get(version);
    if (image === undefined) {
      const allowed = [...versions.keys()].join(', ');
      throw new BadRequestError(`version must be one of those that agents may run: ${allowed}`);
    }
    if (version === undefined && image === agent.failedImage) {
      throw new ConflictError(
        `The update to ${versionOf(image)} has failed before; name the version to try it again`,
      );
    }
    return this.#operate(by, agent, 'update', { input: { image } });
  }

  /** @throws NotFoundError also when there is no such archive. */
  async restore(by: Requester, agentId: string, archiveId: string): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const { id } = await getArchive(by.tenant, agent.id, archiveId);
    return this.#operate(by, agent, 'restore', { input: { archiveId: id } });
  }

  /**
   * Removes an agent, whatever it is doing. One that is not there, or not any more, is removed
   * already. Once written down it will happen, also when Temporal or Docker is out.
   */
  async remove(by: Requester, agentId: string): Promise<Admitted | undefined> {
    const agent = await findAgent(by.tenant, agentId);
    if (!agent) return undefined;
    try {
      return await this.#operate(by, agent, 'delete');
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      this.#parts.log.warn({ agentId }, 'removal waits for Temporal');
      return undefined;
    }
  }

  #entitlement(by: Requester, agent: AgentRow): Promise<Entitlement | undefined> {
    return findEntitlement(by.tenant, agent.userId, this.#parts.accounts);
  }

  /** Whether the owner's plan has what an agent is to be. Without a plan it does not run anyway. */
  async #judge(by: Requester, before: AgentRow, after: AgentRow): Promise<void> {
    requireOwnModel(after.model, after.config);
    const entitlement = await this.#entitlement(by, before);
    if (entitlement === undefined) return;
    if (isChanged(before, after)) wantedModel(choiceOf(after), entitlement.plan);
    checkSkillLimit(after.config, entitlement, before.config);
  }

  /** Writes an operation down, then tells the agent's supervisor. What it refuses is taken back. */
  async #operate(
    by: Requester,
    agent: AgentRow,
    kind: Kind,
    change: Change = {},
    attempt = 1,
  ): Promise<Admitted> {
    const { engines, secrets, supervisors } = this.#parts;
    const { idempotencyId: id, tenant } = by;
    if (await isHostGone(tenant, agent.host)) {
      if (kind !== 'delete') throw new HostGoneError(agent.host);
      await removeLostAgent(by, agent, id);
      return { agent, kind, operationId: id, run: undefined };
    }
    if (kind !== 'delete') {
      if (agent.startedAt === null && (await isUnpaidClone(tenant, agent.id))) {
        throw new ConflictError('The agent is a clone, and waits for its payment');
      }
      await engines.require(tenant, agent.host);
    }
    const { credential } = change;
    const named = { agentId: agent.id, operationId: id };
    const input = change.input && sealInput(secrets, named, change.input);
    const row = await requestOperation(tenant, agent, { id, kind, by, input, credential });
    // Its own, or the removal that is open.
    const operationId = row.id;
    const begun = { agent, kind, operationId, run: undefined };
    // It has begun, and may be over, since it was asked for before.
    if (row.status !== 'requested') return begun;
    const isKept = operationRules(kind).refused === 'kept';
    try {
      const supervised = supervisedOf(agent);
      const asked = await supervisors.request(supervised, kind, operationId, row.requestedAt);
      const isOther = asked.operationId !== operationId;
      // This may have taken so long that a worker took the request back.
      if (!isOther && !isKept && !(await admitOperation(tenant, id))) {
        throw new UnavailableError('It took too long to ask for this; try again');
      }
      if (!isOther || (await this.#join(tenant, row, asked.operationId))) {
        return { agent, kind, ...asked };
      }
    } catch (error) {
      // Not heard is not the same as not happened: only what has not begun can be told as refused.
      if (isKept || (await withdrawOperation(tenant, id))) throw error;
      return begun;
    }
    // Whoever asked before has taken their request back, so this one stands for itself. What is never taken
    // back is handed over by a worker.
    if (isKept || !(await withdrawOperation(tenant, id))) return begun;
    if (attempt < MAX_ATTEMPTS) return this.#operate(by, agent, kind, change, attempt + 1);
    throw new ConflictError(`Another operation is running: ${kind}`);
  }

  /**
   * Makes of a request the same operation that is under way: the same only when it brings the same.
   *
   * @returns false when that one is not carried out.
   */
  async #join(tenant: TenantDatabase, row: OperationRow, otherId: string): Promise<boolean> {
    const other = await waitUntilBegun(tenant, otherId);
    if (!other) return false;
    if (!isSameInput(other.input, row.input)) {
      throw new ConflictError(`Another operation is running: ${other.kind}`);
    }
    await joinOperation(tenant, row, other);
    return true;
  }
}

/** Whether another model is asked for. What was there already binds at the call alone. */
const isChanged = (before: AgentRow, after: AgentRow): boolean =>
  !isDeepStrictEqual(choiceOf(before), choiceOf(after));
