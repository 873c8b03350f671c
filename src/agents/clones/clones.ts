import type { Hex } from 'viem';
import type { Models } from '../../ai/models/models.js';
import type { AdminRules } from '../../accounts/accounts/admin.js';
import { isSignedByWallet } from '../../money/chain/wallet-signature.js';
import { agentCap } from '../model/agent-cap.js';
import { choiceOf } from '../model/agent-model.js';
import { getAgent } from '../agents/agents.js';
import {
  checkLimit,
  insertAgent,
  lockAgentsOf,
  translateNameConflict,
} from '../lifecycle/create-agent.js';
import type { Requester } from '../../platform/audit/requester.js';
import type { Receipt } from '../../money/chain/answers.js';
import { ChainAwayError, PLATFORM, type Chain } from '../../money/chain/chain-node.js';
import type { ChainSettings } from '../../money/chain/settings.js';
import { violates } from '../../platform/database/constraints.js';
import type {
  Database,
  TenantDatabase,
  TenantTransaction,
} from '../../platform/database/database.js';
import type { AgentRow, CloneRow } from '../../platform/database/models.js';
import { BadRequestError, UnavailableError } from '../../lib/errors.js';
import type { DockerHosts } from '../hosts/docker-hosts.js';
import { cachedFor } from '../../lib/cached-for.js';
import type { SecretBox } from '../../platform/secrets/secret-box.js';
import { sessionOf } from '../../money/sessions/causes.js';
import { copyInstalls } from '../skills/installed-skills.js';
import { ownWallets } from '../../money/wallets/own-wallets.js';
import { PaymentInvalidError, PaymentNotFoundError, PaymentUsedError } from './clone-errors.js';
import type { Specialization } from '../../types/clone-terms.js';
import { paymentFaultOf } from './payment-fault.js';
import type { CloneSettings } from './settings.js';

/** Maximum number of seconds between a payment's stated time and its block's time. */
const MAX_FROM_BLOCK = 15 * 60;

/** Maximum number of seconds that a payment's time may be ahead of the platform's clock. */
const MAX_AHEAD = 5 * 60;

const SEEN_MS = 2_000;

export interface PaymentProof {
  readonly transactionHash: string;
  /** Base units of pathUSD, no less than the price. */
  readonly amount: bigint;
  readonly chainId: number;
  readonly from: string;
  readonly to: string;
  /** Unix seconds. */
  readonly timestamp: number;
  /** Signature by `from` over `clonePaymentText`. */
  readonly signature?: string | undefined;
}

export interface CloneRequest {
  readonly parentAgentId: string;
  readonly name: string;
  readonly specialization: Specialization;
  /** The parent's generation; the clone's is one higher. */
  readonly generation: number;
  readonly paymentProof: PaymentProof;
}

export interface Cloned {
  readonly agent: AgentRow;
  readonly clone: CloneRow;
}

interface CloneParts {
  readonly database: Database;
  readonly secrets: SecretBox;
  readonly engines: Pick<DockerHosts, 'unavailableLocalHost'>;
  readonly enabled: boolean;
  readonly accounts: AdminRules;
  readonly models: Models;
  readonly node: Chain;
  readonly chain: Pick<ChainSettings, 'treasury' | 'escrow'>;
  readonly settings: CloneSettings;
}

/** Builds the text that a wallet that is not linked signs to prove its payment, since hashes are public. */
export const clonePaymentText = (
  chainId: number,
  { name, parentAgentId, paymentProof }: Omit<CloneRequest, 'specialization' | 'generation'>,
): string =>
  [
    'agent-platform-clone:v1',
    chainId,
    paymentProof.transactionHash.toLowerCase(),
    parentAgentId,
    name,
  ].join('\n');

/**
 * Agents cloned from others, for a payment made beforehand. The transaction that creates the agent claims the
 * payment; a refused request claims nothing. `worker/handed-rows.ts` starts the clone's workflow.
 */
export class Clones {
  readonly #parts: CloneParts;
  readonly #isChainThere: () => Promise<boolean>;

  constructor(parts: CloneParts) {
    this.#parts = parts;
    this.#isChainThere = cachedFor(SEEN_MS, async () => {
      try {
        await parts.node.onBehalfOf(PLATFORM).blockNumber();
        return true;
      } catch (error) {
        if (error instanceof ChainAwayError) return false;
        throw error;
      }
    });
  }

  isPayable(): Promise<boolean> {
    const { treasury } = this.#parts.chain;
    return treasury === undefined ? Promise.resolve(false) : this.#isChainThere();
  }

  /**
   * Records a clone for the parent's owner, or retries a failed one.
   * @throws BadRequestError, NotFoundError, ChainAwayError, PaymentUsedError, PaymentNotFoundError,
   * PaymentInvalidError; the errors of `createAgent`
   */
  async request(by: Requester, requested: CloneRequest): Promise<Cloned> {
    const { chain, database, enabled, node } = this.#parts;
    const { paymentProof: proof } = requested;
    if (proof.chainId !== node.chainId) {
      throw new BadRequestError(`paymentProof.chainId must be ${node.chainId}`);
    }
    if (proof.timestamp > Date.now() / 1_000 + MAX_AHEAD) {
      throw new BadRequestError('paymentProof.timestamp is in the future');
    }
    if (!enabled) throw new UnavailableError('Provisioning is disabled');
    const parent = await getAgent(by.tenant, requested.parentAgentId);
    const owner = database.asUser(parent.userId);
    const hash = hexOf(proof.transactionHash);
    const earlier = await owner.transaction((db) => this.#findPaid(db, hash));
    const same = earlier && isSame(earlier, requested) ? earlier : undefined;
    const isAgain = same !== undefined && (await owner.transaction((db) => hasFailed(db, same)));
    if (same && same.agent.id === by.idempotencyId && !isAgain) return same;

    if (!isAgain) {
      const limit = this.#limitOf(parent);
      await owner.transaction((db) => checkLimit(db, { userId: parent.userId, limit }));
    }
    const { treasury } = chain;
    if (treasury === undefined) throw new ChainAwayError();
    const receipt = await this.#onBehalfOf(parent.userId).receipt(hash);
    if (!isAgain && (earlier || (await this.#isClaimed(hash)))) {
      throw new PaymentUsedError(same?.agent.id);
    }
    if (!receipt) throw new PaymentNotFoundError();
    await this.#judge(owner, requested, { receipt, treasury, isAgain });
    return isAgain
      ? this.#again(by, owner, same, receipt)
      : this.#create(by, owner, { parent, requested, receipt, hash });
  }

  async #create(
    by: Requester,
    owner: TenantDatabase,
    {
      requested,
      hash,
      parent,
      receipt,
    }: { parent: AgentRow; requested: CloneRequest; receipt: Receipt; hash: Hex },
  ): Promise<Cloned> {
    const { engines, node, secrets } = this.#parts;
    const { idempotencyId: id, requestId } = by;
    const { id: parentAgentId, userId, plan, model, aiProvider, config, image } = parent;
    const notOn = await engines.unavailableLocalHost(owner);
    const paid = { chainId: String(node.chainId), hash };
    const insert = async (db: TenantTransaction): Promise<Cloned> => {
      // Claim first: a concurrent second request waits here and fails with the claim's error.
      await db.PaymentClaim.create({ ...paid, cloneId: id, userId });
      await lockAgentsOf(db, userId);
      const agent = await insertAgent(db, secrets, {
        id,
        userId,
        name: requested.name,
        plan,
        model,
        aiProvider,
        config,
        image,
        parentAgentId,
        generation: requested.generation + 1,
        on: parent.host,
        notOn,
        requestId,
        actor: by.actor,
        limit: this.#limitOf(parent),
      });
      // The parent's memory and configuration, which the clone gets as well, have these skills.
      await copyInstalls(db, { from: parentAgentId, to: agent });
      const clone = await db.Clone.create({
        id,
        userId,
        parentAgentId,
        specialization: requested.specialization,
        ...paid,
        payer: hexOf(requested.paymentProof.from),
        amount: String(requested.paymentProof.amount),
        block: String(receipt.blockNumber),
        requestedBy: by.actor,
        requestId,
      });
      return { agent, clone };
    };
    try {
      return await translateNameConflict(requested, () => owner.transaction(insert));
    } catch (error) {
      if (!violates(error, 'payment_claims_pkey')) throw error;
      const earlier = await owner.transaction((db) => this.#findPaid(db, hash));
      if (earlier?.agent.id === id) return earlier;
      throw new PaymentUsedError(
        earlier && isSame(earlier, requested) ? earlier.agent.id : undefined,
      );
    }
  }

  /** Retries a failed clone, unless a concurrent request has done so. */
  async #again(
    { actor, requestId }: Requester,
    owner: TenantDatabase,
    { agent: { id, userId } }: Cloned,
    { blockNumber }: Receipt,
  ): Promise<Cloned> {
    return owner.transaction(async (db) => {
      await lockAgentsOf(db, userId);
      const found = await this.#find(db, id);
      if (!(await hasFailed(db, found))) return found;
      await db.query(
        `UPDATE clones SET state = 'waiting', due_at = now(), block = $blockNumber,
                requested_by = $actor, request_id = $requestId
          WHERE id = $id`,
        { id, blockNumber, actor, requestId },
      );
      await db.Agent.update({ status: 'pending', statusReason: null }, { where: { id } });
      return this.#find(db, id);
    });
  }

  async #judge(
    owner: TenantDatabase,
    requested: CloneRequest,
    paid: { readonly receipt: Receipt; readonly treasury: Hex; readonly isAgain: boolean },
  ): Promise<void> {
    const { isAgain, receipt, treasury } = paid;
    const { amount, from, timestamp, to } = requested.paymentProof;
    const fault = paymentFaultOf(receipt, { payer: hexOf(from), amount, treasury });
    // The recipient that the caller states ranks among the faults found on the chain.
    const isElsewhere = fault !== 'reverted' && fault !== 'wrong_token' && hexOf(to) !== treasury;
    if (isElsewhere) throw new PaymentInvalidError('wrong_recipient');
    if (fault) throw new PaymentInvalidError(fault);
    if (await this.#isSettlement(requested.paymentProof))
      throw new PaymentInvalidError('wrong_sender');
    const block = await this.#onBehalfOf(owner.userId ?? '').block(receipt.blockNumber);
    if (!block) throw new PaymentNotFoundError();
    // A claimed payment was in time; a reorganization may mine it again much later.
    if (!isAgain && Math.abs(block.timestamp - timestamp) > MAX_FROM_BLOCK) {
      throw new PaymentInvalidError('timestamp');
    }
    if (!(await this.#isOfOwner(owner, requested))) throw new PaymentInvalidError('not_linked');
  }

  /**
   * Reports whether the transfer settles payment sessions: it is from the escrow, or its transaction is a
   * settlement of ours, perhaps with an earlier escrow.
   */
  async #isSettlement({ from, transactionHash }: PaymentProof): Promise<boolean> {
    const { chain, database } = this.#parts;
    if (hexOf(from) === chain.escrow) return true;
    const payments = await database.asPlatform().query<{ cause: string }>(
      `SELECT p.cause FROM transactions t JOIN payments p ON p.id = t.payment_id
          WHERE t.hash = $hash`,
      { hash: hexOf(transactionHash) },
    );
    return payments.some(({ cause }) => sessionOf(cause) !== undefined);
  }

  async #isOfOwner(owner: TenantDatabase, requested: CloneRequest): Promise<boolean> {
    const { node, settings } = this.#parts;
    const { from, signature } = requested.paymentProof;
    const address = hexOf(from);
    const linked = await owner.transaction((db) => ownWallets(db, owner.userId ?? ''));
    if (linked.includes(address)) return true;
    if (settings.payerProof === 'linked') return linked.length === 0;
    if (signature === undefined) return false;
    const text = clonePaymentText(node.chainId, requested);
    const signed = { address, text, signature: hexOf(signature) };
    return isSignedByWallet(signed, this.#onBehalfOf(owner.userId ?? ''));
  }

  #onBehalfOf(userId: string) {
    return this.#parts.node.onBehalfOf({ owner: userId, isUrgent: true });
  }

  #limitOf(parent: AgentRow): (db: TenantTransaction) => Promise<number> {
    const { accounts, models } = this.#parts;
    const judged = {
      choice: choiceOf(parent),
      config: parent.config,
      models: models.current,
    };
    return (db) => agentCap(db, parent.userId, accounts, judged);
  }

  /** Reports whether any user has claimed the transaction. */
  async #isClaimed(hash: Hex): Promise<boolean> {
    const { database, node } = this.#parts;
    const claims = await database
      .asPlatform()
      .query('SELECT FROM payment_claims WHERE chain_id = $chainId AND hash = $hash', {
        chainId: node.chainId,
        hash,
      });
    return claims.length > 0;
  }

  /** Finds the tenant's clone that this transaction paid for. */
  async #findPaid(db: TenantTransaction, hash: Hex): Promise<Cloned | undefined> {
    const chainId = String(this.#parts.node.chainId);
    const clone = await db.Clone.findOne({ where: { chainId, hash } });
    return clone ? this.#find(db, clone.id) : undefined;
  }

  async #find(db: TenantTransaction, id: string): Promise<Cloned> {
    return { agent: await db.Agent.getByPk(id), clone: await db.Clone.getByPk(id) };
  }
}

const isSame = (
  { agent, clone }: Cloned,
  { generation, name, parentAgentId, specialization }: CloneRequest,
): boolean =>
  agent.desired !== 'deleted' &&
  agent.name === name &&
  agent.generation === generation + 1 &&
  clone.parentAgentId === parentAgentId &&
  clone.specialization === specialization;

/** Reports whether the clone never started and no operation is pending. */
async function hasFailed(db: TenantTransaction, { agent, clone }: Cloned): Promise<boolean> {
  if (agent.desired === 'deleted' || agent.startedAt !== null) return false;
  if (clone.state !== 'handed-over') return clone.state === 'failed';
  if (agent.status !== 'error') return false;
  return (await db.Operation.count({ where: { agentId: agent.id, finishedAt: null } })) === 0;
}

/** The schema has checked the form. */
const hexOf = (text: string): Hex => text.toLowerCase() as Hex;
