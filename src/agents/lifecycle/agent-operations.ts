import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { AdminRules } from '../../accounts/accounts/admin.js';
import { findEntitlement, type Entitlement } from '../../accounts/accounts/entitlement.js';
import { PLAN_LIMITS, planRequired, requirePlan } from '../../types/plans.js';
import { OPERATOR_USER_ID } from '../../types/operator-user.js';
import type { ProviderName } from '../../ai/completion/provider-names.js';
import type { Models } from '../../ai/models/models.js';
import type { Requester } from '../../platform/audit/requester.js';
import { type RuntimeImageNames, versionOf } from '../../docker/containers/image-name.js';
import type { TenantDatabase } from '../../platform/database/database.js';
import type { AgentRow, OperationRow } from '../../platform/database/models.js';
import { isUnpaidClone } from '../operations/unpaid-clone.js';
import { BadRequestError, ConflictError, UnavailableError } from '../../lib/errors.js';
import type { DockerHosts } from '../hosts/docker-hosts.js';
import { isHostRemoved } from '../hosts/hosts.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { agentConfig } from '../model/agent-config.js';
import { sealCredential, type CredentialChange } from '../credentials/agent-credentials.js';
import { choiceOf, requireOwnModel, requestedModelOf } from '../model/agent-model.js';
import { checkSkillLimit, withInstalled, withoutSkill, withSkill } from '../model/agent-skills.js';
import {
  installedSkills,
  requireInstalled,
  type SkillInstall,
} from '../skills/installed-skills.js';
import { getSkill } from '../../skills/skills.js';
import { skillFile } from '../../skills/skill-file.js';
import type { SkillChange } from '../../types/skill-change.js';
import { findAgent, getAgent } from '../agents/agents.js';
import { getArchive } from '../memory/archives.js';
import { requestedModel } from '../model/models.js';
import { isSameInput, sealInput, type RequestedInput } from '../operations/operation-input.js';
import { operationRules, type PlainKind, type RequestedKind } from '../../types/operation-kinds.js';
import { HostGoneError, removeLostAgent } from '../operations/lost-agent.js';
import {
  admitOperation,
  findOperation,
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

/** Maximum number of attempts while the supervisor names other operations that are then withdrawn. */
const MAX_ATTEMPTS = 3;

type Kind = RequestedKind;

export interface Admitted extends RequestedOperation {
  readonly agent: AgentRow;
  readonly kind: Kind;
}

interface Change {
  readonly input?: RequestedInput;
  readonly credential?: CredentialChange;
  readonly install?: SkillInstall;
}

export interface AgentOperationParts {
  readonly supervisors: AgentSupervisors;
  readonly engines: Pick<DockerHosts, 'require'>;
  readonly secrets: SecretBox;
  readonly images: RuntimeImageNames;
  readonly aiProvider: ProviderName;
  readonly models: Models;
  readonly accounts: AdminRules;
  readonly log: Logger;
}

/**
 * The operations on an agent: checked, stored, then admitted by the supervisor. All may throw NotFoundError,
 * BadRequestError, DockerAwayError, ConflictError while another operation runs or after the host was lost,
 * and UnavailableError without Temporal.
 */
export class AgentOperations {
  readonly #parts: AgentOperationParts;

  constructor(parts: AgentOperationParts) {
    this.#parts = parts;
  }

  /** Runs an operation without input. @throws PaymentRequiredError for a user's start without a plan. */
  async run(by: Requester, agentId: string, kind: PlainKind): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const isToRun = operationRules(kind).desired === 'running';
    if (isToRun && by.actor !== OPERATOR_USER_ID && !(await this.#entitlement(by, agent))) {
      throw planRequired();
    }
    return this.#operate(by, agent, kind);
  }

  /**
   * Changes plan, provider or configuration; `isAsked` is false if all are omitted.
   * @throws ModelRestrictedError or PaymentRequiredError for more than the owner's plan includes.
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
    const isRequested = Object.values(change).some((each) => each !== undefined);
    if (!isRequested) return { agent, run: undefined, plan, aiProvider, isRequested };
    const wanted = config && withInstalled(config, await installedSkills(by.tenant, agent.id));
    const changed = { ...agent, aiProvider, config: wanted ?? agent.config };
    const limited = await this.#judge(by, agent, changed);
    const input = { plan, aiProvider, ...(config && { config, ...limited }) };
    return {
      ...(await this.#operate(by, agent, 'configure', { input })),
      plan,
      aiProvider,
      isRequested,
    };
  }

  async changeSkill(by: Requester, agentId: string, skill: SkillChange): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const config = withSkill(agent.config, skill);
    const { error } = agentConfig.safeParse(config);
    if (error) throw new BadRequestError(error.issues[0]?.message ?? 'config is not valid');
    const limited = await this.#judge(by, agent, { ...agent, config });
    return this.#operate(by, agent, 'configure', { input: { skill, ...limited } });
  }

  /** Installs the present version of the requester's own skill, or of the public one. @throws NotFoundError */
  async installSkill(by: Requester, agentId: string, name: string): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const skill = await getSkill(by.tenant, name);
    const config = withSkill(agent.config, { name, enabled: true });
    const limited = await this.#judge(by, agent, { ...agent, config });
    const version = { name, skillId: skill.id, version: skill.version };
    return this.#operate(by, agent, 'configure', {
      input: { install: version, ...limited },
      install: { ...version, content: skillFile(skill) },
    });
  }

  /** Removes an installed skill. @throws NotFoundError; ConflictError unless it is installed */
  async removeSkill(by: Requester, agentId: string, name: string): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const begun = await findBegun(by, agent, 'configure');
    if (begun) return begun;
    await requireInstalled(by.tenant, agent, name);
    await this.#judge(by, agent, { ...agent, config: withoutSkill(agent.config, name) });
    const removal = { name, skillId: null, version: null };
    return this.#operate(by, agent, 'configure', {
      input: { install: removal },
      install: { ...removal, content: null },
    });
  }

  /** Changes a credential; null removes it. */
  async changeCredential(
    by: Requester,
    agentId: string,
    name: string,
    value: string | null,
  ): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    return this.#operate(by, agent, 'configure', {
      // The version makes every change unique: sealed values cannot be compared.
      input: { credential: { name, version: by.idempotencyId } },
      credential: sealCredential(this.#parts.secrets, agent.id, { name, value }),
    });
  }

  /**
   * Updates an agent's runtime, by default to the version of new agents.
   * @throws BadRequestError for a version that the operator does not allow.
   */
  async update(by: Requester, agentId: string, version: string | undefined): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const begun = await findBegun(by, agent, 'update');
    if (begun) return begun;
    const { usual, versions } = this.#parts.images;
    const image = version === undefined ? usual : versions.get(version);
    if (image === undefined) {
      const allowed = [...versions.keys()].join(', ');
      throw new BadRequestError(`version must be one of those that agents may run: ${allowed}`);
    }
    if (version === undefined && image === agent.failedImage) {
      throw new ConflictError(
        `The update to ${versionOf(image)} has failed before: name the version to retry`,
        'VERSION_FAILED',
      );
    }
    return this.#operate(by, agent, 'update', { input: { image } });
  }

  /** Restores an archived memory. @throws NotFoundError also when no such archive exists. */
  async restore(by: Requester, agentId: string, archiveId: string): Promise<Admitted> {
    const agent = await getAgent(by.tenant, agentId);
    const begun = await findBegun(by, agent, 'restore');
    if (begun) return begun;
    const { id } = await getArchive(by.tenant, agent.id, archiveId);
    return this.#operate(by, agent, 'restore', { input: { archiveId: id } });
  }

  /** Removes an agent in any state; a stored removal is carried out even if Temporal is unavailable now. */
  async remove(by: Requester, agentId: string): Promise<Admitted | undefined> {
    const agent = await findAgent(by.tenant, agentId);
    if (!agent) return undefined;
    try {
      return await this.#operate(by, agent, 'delete');
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      this.#parts.log.warn({ agentId }, 'removal is pending until Temporal is reachable');
      return undefined;
    }
  }

  #entitlement(by: Requester, agent: AgentRow): Promise<Entitlement | undefined> {
    return findEntitlement(by.tenant, agent.userId, this.#parts.accounts);
  }

  /**
   * Checks the changed agent against the owner's plan, and returns the limit to check again when the change
   * begins. Without a plan the agent cannot run anyway.
   */
  async #judge(
    by: Requester,
    before: AgentRow,
    after: AgentRow,
  ): Promise<{ readonly skillLimit?: number }> {
    requireOwnModel(after.model, after.config);
    const entitlement = await this.#entitlement(by, before);
    if (entitlement === undefined) return {};
    if (isChanged(before, after)) {
      requestedModelOf(this.#parts.models.current, choiceOf(after), entitlement.plan);
    }
    checkSkillLimit(after.config, entitlement, before.config);
    return entitlement.isAdmin ? {} : { skillLimit: PLAN_LIMITS[entitlement.plan].skills };
  }

  async #operate(
    by: Requester,
    agent: AgentRow,
    kind: Kind,
    change: Change = {},
    attempt = 1,
  ): Promise<Admitted> {
    const { engines, secrets, supervisors } = this.#parts;
    const { idempotencyId: id, tenant } = by;
    if (await isHostRemoved(tenant, agent.host)) {
      if (kind !== 'delete') throw new HostGoneError(agent.host);
      await tenant.transaction((db) => removeLostAgent(db, by, agent, id));
      return { agent, kind, operationId: id, run: undefined };
    }
    if (kind !== 'delete') {
      if (agent.startedAt === null && (await isUnpaidClone(tenant, agent.id))) {
        throw new ConflictError('The agent is an unpaid clone: pay for it first', 'CLONE_UNPAID');
      }
      await engines.require(tenant, agent.host);
    }
    const { credential, install } = change;
    const named = { agentId: agent.id, operationId: id };
    const input = change.input && sealInput(secrets, named, change.input);
    const row = await requestOperation(tenant, agent, {
      ...{ id, kind, by, input, credential, install },
    });
    // The id of this request, or of a removal that is already pending.
    const operationId = row.id;
    const begun = { agent, kind, operationId, run: undefined };
    // A repeated request: the operation has begun and may have ended.
    if (row.status !== 'requested') return begun;
    const isKept = operationRules(kind).onRefusal === 'kept';
    try {
      const supervised = supervisedOf(agent);
      const requested = await supervisors.request(supervised, kind, operationId, row.requestedAt);
      const isOther = requested.operationId !== operationId;
      // The call may have taken so long that a worker has withdrawn the request.
      if (!isOther && !isKept && !(await admitOperation(tenant, id))) {
        throw new UnavailableError('The request took too long: retry');
      }
      if (!isOther || (await this.#join(tenant, row, requested.operationId))) {
        return { agent, kind, ...requested };
      }
    } catch (error) {
      // The supervisor may have admitted the operation although the call failed: only an operation that has
      // not begun can be reported as refused.
      if (isKept || (await withdrawOperation(tenant, id))) throw error;
      return begun;
    }
    // The operation to join was withdrawn, so this one is retried: by a worker if it is kept, otherwise here.
    if (isKept || !(await withdrawOperation(tenant, id))) return begun;
    if (attempt < MAX_ATTEMPTS) return this.#operate(by, agent, kind, change, attempt + 1);
    throw new ConflictError(`Another operation is running: ${kind}`, 'OPERATION_IN_FLIGHT');
  }

  /** Joins an operation in flight with the same input; false when that was not carried out. */
  async #join(tenant: TenantDatabase, row: OperationRow, otherId: string): Promise<boolean> {
    const other = await waitUntilBegun(tenant, otherId);
    if (!other) return false;
    if (!isSameInput(other.input, row.input)) {
      throw new ConflictError(`Another operation is running: ${other.kind}`, 'OPERATION_IN_FLIGHT');
    }
    await joinOperation(tenant, row, other);
    return true;
  }
}

/**
 * Returns the operation of a repeated request once the operation has begun. Its outcome, such as a removed skill,
 * would fail the checks of a new request.
 */
async function findBegun(
  { idempotencyId, tenant }: Requester,
  agent: AgentRow,
  kind: Kind,
): Promise<Admitted | undefined> {
  const row = await findOperation(tenant, idempotencyId);
  if (row?.agentId !== agent.id || row.kind !== kind || row.status === 'requested')
    return undefined;
  return { agent, kind, operationId: row.id, run: undefined };
}

/** Reports whether the change requests another model. An unchanged model is checked at each call. */
const isChanged = (before: AgentRow, after: AgentRow): boolean =>
  !isDeepStrictEqual(choiceOf(before), choiceOf(after));
