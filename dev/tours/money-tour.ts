import { randomInt } from 'node:crypto';
import type { Hex } from 'viem';
import { generatePrivateKey, privateKeyToAddress } from 'viem/accounts';
import * as z from 'zod';
import { formatAmount, ONE } from '../../src/types/money.js';
import type { LocalChain } from '../chain/local-chain.js';
import { StartFailure } from '../failure.js';
import { say } from '../report.js';
import { Payer, transfer } from './payer.js';
import { SessionTour } from './session-tour.js';
import { Terminal } from './terminal.js';
import { TourUser, type PlatformFacts } from './tour-user.js';

/** The platform's addresses, keys and chain for the tour. */
export interface MoneyTourFacts extends PlatformFacts {
  readonly chain: LocalChain;
}

const hex = z.templateLiteral(['0x', z.string()]);
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
  readonly #user: TourUser;

  constructor(facts: MoneyTourFacts) {
    this.#facts = facts;
    const { accounts } = facts.chain;
    // Skips the first account: `npm start` spends its money.
    const taken = accounts[randomInt(1, accounts.length)];
    if (!taken)
      throw new StartFailure('The chain has no accounts with money: restart it with npm start.');
    this.#payer = new Payer(facts.chain, taken, this.#terminal);
    this.#user = new TourUser(facts, this.#terminal);
  }

  /** Runs the tour; each tour of an installation registers a new person. @throws StartFailure */
  async go(parts: readonly Part[] = PARTS): Promise<void> {
    const { chain } = this.#facts;
    say(`The account ${this.#payer.address} of ${chain.network} at ${chain.rpcUrl} pays.`);
    this.#user.introduce();

    if (parts.includes('session')) {
      await new SessionTour(this.#facts.webUrl, this.#payer, this.#terminal).go();
    }
    if (parts.includes('agents')) await this.#payForAgents();
  }

  async #payForAgents(): Promise<void> {
    this.#terminal.heading(
      'Register, sign in (session in $COOKIE) and get a plan for three agents',
    );
    const userId = await this.#user.signIn();
    this.#terminal.heading('Create the agent to clone');
    const parentId = await this.#user.provision('parent');
    const cloneId = await this.#clone(parentId);
    await this.#paySplit(userId, parentId);
    this.#terminal.heading('Delete both agents; the wallet stays');
    await this.#user.remove(cloneId, parentId);
  }

  async #clone(parentAgentId: string): Promise<string> {
    const terminal = this.#terminal;
    const { chainId } = this.#facts.chain;
    terminal.heading('Read the price of a clone, pay it and create the clone');
    const offer = await terminal.ask(this.#user.web('GET', '/api/agents/clone'));
    const { price, token, treasury } = terms.parse(offer.body);
    const { blockNumber, hash } = await this.#payer.send([transfer(token, treasury, ONE)]);
    const block = await this.#payer.node.block(blockNumber);
    const asked = this.#user.web('POST', '/api/agents/clone', {
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
    await this.#user.untilRunning(id);
    return id;
  }

  async #paySplit(userId: string, agentId: string): Promise<void> {
    const terminal = this.#terminal;
    const { usdc } = this.#facts.chain;
    terminal.heading(
      'Create a wallet for the agent, fund it with USDC and split the USDC between two recipients',
    );
    const made = await terminal.ask(
      this.#user.backend('POST', '/api/underground/wallets', { userId, agentId }),
    );
    const { address: fromAddress } = wallet.parse(made.body);
    await this.#payer.send([transfer(usdc.address, fromAddress, SPLIT)]);
    await terminal.ask(
      this.#user.backend('GET', `/api/underground/wallets/${fromAddress}/balance?userId=${userId}`),
    );
    const recipients = [66.6667, 33.3333].map((share) => ({
      address: privateKeyToAddress(generatePrivateKey()).toLowerCase() as Hex,
      share,
    }));
    const asked = await terminal.ask(
      this.#user.backend('POST', '/api/underground/splits', {
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
      this.#user.backend('GET', `/api/underground/splits/${splitId}`),
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
}
