import { randomBytes, randomInt } from 'node:crypto';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import * as z from 'zod';
import { formatAmount, ONE } from '../../src/types/money.js';
import type { LocalChain } from '../chain/local-chain.js';
import { StartFailure } from '../failure.js';
import { say } from '../report.js';
import { Payer, transfer } from './payer.js';
import { SessionTour } from './session-tour.js';
import { Terminal, type TourRequest } from './terminal.js';

/** The platform's address, chain and keys for the tour. */
export interface MoneyTourFacts {
  readonly webUrl: string;
  readonly backendUrl: string;
  readonly internalApiKey: string;
  /** The file from which a shell reads the key. */
  readonly secretsFile: string;
  readonly chain: LocalChain;
}

const hex = z.templateLiteral(['0x', z.string()]);
const account = z.object({ user: z.object({ id: z.string() }) });
const provisioned = z.object({ agent: z.object({ id: z.string() }) });
const agentState = z.object({
  agent: z.object({ status: z.string(), statusReason: z.string().nullish() }),
});
const terms = z.object({ treasury: hex, token: hex, price: z.string() });
const cloned = z.object({ clone: z.object({ id: z.string() }) });
const wallet = z.object({ address: hex });
const queued = z.object({ splitId: z.number() });
const split = z.object({
  status: z.string(),
  payouts: z.array(z.object({ transaction: hex.nullable() })),
});

/** The amount to split, in base units. */
const SPLIT = 3n * ONE;

/** Parts of the tour: purchases of a wallet without an account, and payments of a user's agents. */
export const PARTS = ['session', 'agents'] as const;

export type Part = (typeof PARTS)[number];

/** A person with an account of the chain, who pays and is paid until the ledger balances. */
export class MoneyTour {
  readonly #facts: MoneyTourFacts;
  readonly #terminal = new Terminal();
  readonly #payer: Payer;
  #cookie = '';

  constructor(facts: MoneyTourFacts) {
    this.#facts = facts;
    const { accounts } = facts.chain;
    // Skips the first account: `npm start` spends its money.
    const taken = accounts[randomInt(1, accounts.length)];
    if (!taken)
      throw new StartFailure('The chain has no accounts with money: restart it with npm start.');
    this.#payer = new Payer(facts.chain, taken, this.#terminal);
  }

  /** Runs the tour; each tour of an installation is another person's. @throws StartFailure */
  async go(parts: readonly Part[] = PARTS): Promise<void> {
    const { chain, internalApiKey, secretsFile } = this.#facts;
    this.#terminal.hide('INTERNAL_API_KEY', internalApiKey);
    say(`The account ${this.#payer.address} of ${chain.network} at ${chain.rpcUrl} pays.`);
    say('To send the shown requests again from a shell, set');
    say(`export INTERNAL_API_KEY=$(node -p "require('${secretsFile}').internalApiKey")`);

    if (parts.includes('session')) {
      await new SessionTour(this.#facts.webUrl, this.#payer, this.#terminal).go();
    }
    if (parts.includes('agents')) await this.#payForAgents();
  }

  async #payForAgents(): Promise<void> {
    const userId = await this.#signIn();
    const parentId = await this.#provision();
    const cloneId = await this.#clone(parentId);
    await this.#paySplit(userId, parentId);
    await this.#remove([cloneId, parentId]);
  }

  async #signIn(): Promise<string> {
    const terminal = this.#terminal;
    terminal.heading('Register, sign in (session in $COOKIE) and get a plan for three agents');
    const email = `ada-${randomBytes(4).toString('hex')}@example.com`;
    const password = 'correct horse battery';
    await terminal.ask(this.#web('POST', '/api/register', { name: 'Ada', email, password }));
    const { headers } = await terminal.ask(
      this.#web('POST', '/api/auth/login', { email, password }),
    );
    this.#cookie = [headers['set-cookie'] ?? []].flat()[0]?.split(';')[0] ?? '';
    say(`\nCOOKIE='${this.#cookie}'`);
    terminal.hide('COOKIE', this.#cookie);
    const { body } = await terminal.ask(this.#web('GET', '/api/auth/session'));
    const { id } = account.parse(body).user;
    await terminal.ask(
      this.#backend('POST', '/api/subscriptions/deploy', { userId: id, plan: 'solo' }),
    );
    return id;
  }

  async #provision(): Promise<string> {
    this.#terminal.heading('Create the agent to clone');
    const asked = this.#web('POST', '/api/agents/provision', { name: 'parent' });
    const { id } = provisioned.parse((await this.#terminal.ask(asked)).body).agent;
    await this.#untilRunning(id);
    return id;
  }

  async #clone(parentAgentId: string): Promise<string> {
    const terminal = this.#terminal;
    const { chainId } = this.#facts.chain;
    terminal.heading('Read the price of a clone, pay it and create the clone');
    const offer = await terminal.ask(this.#web('GET', '/api/agents/clone'));
    const { price, token, treasury } = terms.parse(offer.body);
    const { blockNumber, hash } = await this.#payer.send([transfer(token, treasury, ONE)]);
    const block = await this.#payer.node.block(blockNumber);
    const asked = this.#web('POST', '/api/agents/clone', {
      parentAgentId,
      name: 'clone',
      specialization: 'promo',
      generation: 1,
      paymentProof: {
        transactionHash: hash,
        amount: price,
        currency: 'pathUSD',
        chainId,
        from: this.#payer.address,
        to: treasury,
        timestamp: block?.timestamp,
      },
    });
    const { id } = cloned.parse((await terminal.ask(asked)).body).clone;
    await this.#untilRunning(id);
    return id;
  }

  async #paySplit(userId: string, agentId: string): Promise<void> {
    const terminal = this.#terminal;
    const { usdc } = this.#facts.chain;
    terminal.heading(
      'Create a wallet for the agent, fund it with USDC and split the USDC between two recipients',
    );
    const made = await terminal.ask(
      this.#backend('POST', '/api/underground/wallets', { userId, agentId }),
    );
    const { address: fromAddress } = wallet.parse(made.body);
    await this.#payer.send([transfer(usdc.address, fromAddress, SPLIT)]);
    await terminal.ask(
      this.#backend('GET', `/api/underground/wallets/${fromAddress}/balance?userId=${userId}`),
    );
    const recipients = [66.6667, 33.3333].map((share) => ({
      address: privateKeyToAddress(generatePrivateKey()).toLowerCase() as Hex,
      share,
    }));
    const asked = await terminal.ask(
      this.#backend('POST', '/api/underground/splits', {
        userId,
        agentId,
        fromAddress,
        name: 'A song',
        totalAmount: formatAmount(SPLIT),
        recipients,
      }),
    );
    const { splitId } = queued.parse(asked.body);
    const { body } = await terminal.until(
      this.#backend('GET', `/api/underground/splits/${splitId}`),
      (found) => ['completed', 'partial', 'failed'].includes(split.parse(found).status),
    );
    const { payouts, status } = split.parse(body);
    if (status !== 'completed')
      throw new StartFailure('The tour ends here: not every recipient was paid.');
    for (const hash of new Set(payouts.map(({ transaction }) => transaction))) {
      say(`transaction ${hash} paid the recipients`);
    }
    for (const { address } of recipients) {
      const balance = await this.#payer.node.tokenBalance(usdc.address, address);
      say(`${address} has ${formatAmount(balance)} USDC`);
    }
  }

  async #remove(agentIds: readonly string[]): Promise<void> {
    this.#terminal.heading('Delete both agents; the wallet stays');
    for (const id of agentIds) await this.#terminal.ask(this.#web('DELETE', `/api/agents/${id}`));
  }

  async #untilRunning(agentId: string): Promise<void> {
    const { body } = await this.#terminal.until(
      this.#web('GET', `/api/agents/${agentId}`),
      (found) => ['running', 'error'].includes(agentState.parse(found).agent.status),
    );
    const { status, statusReason } = agentState.parse(body).agent;
    if (status === 'running') return;
    throw new StartFailure(`The tour ends here: the agent does not run. ${statusReason ?? ''}`);
  }

  #web(method: TourRequest['method'], path: string, body?: unknown): TourRequest {
    const headers = { ...(this.#cookie !== '' && { cookie: this.#cookie }) };
    return { method, url: `${this.#facts.webUrl}${path}`, headers, body };
  }

  #backend(method: TourRequest['method'], path: string, body?: unknown): TourRequest {
    const { backendUrl, internalApiKey } = this.#facts;
    const headers = { authorization: `Bearer ${internalApiKey}` };
    return { method, url: `${backendUrl}${path}`, headers, body };
  }
}
