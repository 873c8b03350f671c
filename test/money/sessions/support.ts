import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createTestClient, encodeFunctionData, erc20Abi, http, type Hex } from 'viem';
import { generatePrivateKey, privateKeyToAccount, type PrivateKeyAccount } from 'viem/accounts';
import { furnish, partiesOf } from '../../../dev/chain/local-chain.js';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { feeLimitsOf } from '../../../src/money/chain/fee-limits.js';
import { escrowAbi } from '../../../src/money/chain/payment-escrow.js';
import {
  holdTypedData,
  latestDeadline,
  newNonce,
} from '../../../src/money/sessions/hold-authorization.js';
import { openingCheck } from '../../../src/money/sessions/opening-check.js';
import { SessionSettlements } from '../../../src/money/sessions/session-settlements.js';
import { SessionOpenings, wakeSession } from '../../../src/money/sessions/session-openings.js';
import { ChainPayments } from '../../../src/money/payments/chain-payments.js';
import { Signer } from '../../../src/money/payments/signer.js';
import { SigningKeys } from '../../../src/money/payments/signing-keys.js';
import { openKey } from '../../../src/money/wallets/open-key.js';
import { keptLog } from '../../support/platform-environment.js';
import { CHAIN_ID, PATH_USD, testChain, type TestChain } from '../../support/chain/chain.js';
import { rpcProxy, type RpcProxy } from '../../support/chain/rpc-proxy.js';
import { handOver } from '../../../worker/hand-over.js';
import { paymentSessions } from '../../../worker/handed-rows.js';
import { walletSite, type WalletSite } from '../wallets/support.js';

/** 1 pathUSD in base units. */
export const ONE = 1_000_000n;

/** A wallet with a deposit in the escrow. */
export interface Wallet extends PrivateKeyAccount {
  readonly lower: Hex;
}

/** The web API on a chain with an escrow; sessions are processed only after `run`. */
export interface SessionLab {
  readonly chain: TestChain;
  /** The node for the payment signer. */
  readonly signersNode: RpcProxy;
  readonly site: WalletSite;
  readonly escrow: Hex;
  readonly payments: ChainPayments;
  /** Creates a wallet, new or from a key, that has deposited this many base units. */
  wallet(deposited: bigint, privateKey?: Hex): Promise<Wallet>;
  /** Signs a hold of this amount with the wallet. */
  sign(
    wallet: PrivateKeyAccount,
    amount: bigint,
    over?: { readonly payer?: Hex; readonly nonce?: Hex; readonly deadline?: bigint },
  ): Promise<{ readonly nonce: Hex; readonly deadline: number; readonly signature: Hex }>;
  /** Moves the chain's clock forward. */
  pass(seconds: number): Promise<void>;
  /** Withdraws a wallet's balance that is not held. */
  withdraw(wallet: PrivateKeyAccount, amount: bigint): Promise<void>;
  /** Runs the steps of sessions and of the payment signer until the returned function is called. */
  run(): () => Promise<void>;
  close(): Promise<void>;
}

export async function sessionLab(
  env: Readonly<Record<string, string | undefined>> = {},
): Promise<SessionLab> {
  const chain = await testChain();
  const dataDir = await mkdtemp(path.join(tmpdir(), 'aps-sessions-'));
  const parties = partiesOf({ treasury: undefined, operator: undefined });
  const place = { rpcUrl: chain.rpcUrl, chainId: CHAIN_ID, dataDir };
  const { escrow, operator, treasury } = await furnish(place, parties, { holdMs: 172_800_000 });
  const site = await walletSite({
    CHAIN_RPC_URL: chain.rpcUrl,
    CHAIN_CONFIRMATIONS: '1',
    ESCROW_ADDRESS: escrow,
    OPERATOR_ADDRESS: operator,
    TREASURY_ADDRESS: treasury,
    ...env,
  });
  const database = site.database.db;
  const node = new ChainNode({ chainId: CHAIN_ID, url: chain.rpcUrl });
  const signersNode = await rpcProxy(chain.rpcUrl);
  const payments = new ChainPayments(database);
  const { secrets } = site.dependencies;
  const kept = (address: Hex) => openKey(database.asPlatform(), secrets, address);
  const openings = new SessionOpenings({ database, payments, node, operator, kept });
  const settings = site.dependencies.settings.paymentSessions;
  const settlements = new SessionSettlements({
    database,
    payments,
    node,
    confirmations: 1,
    operator,
    settings,
  });
  const signer = new Signer(
    {
      database,
      gaps: new Set(),
      log: keptLog().log,
      chain: {
        chainId: CHAIN_ID,
        node: new ChainNode({ chainId: CHAIN_ID, url: signersNode.url }),
        confirmations: 1,
        feeBumpAfterMs: 3_600_000,
        feeLimits: feeLimitsOf(CHAIN_ID),
      },
      keys: new SigningKeys(parties.operator, kept),
      onEnded: wakeSession,
      checkOf: openingCheck(database),
    },
    operator,
  );
  const domain = { chainId: CHAIN_ID, escrow };
  const ofEscrow = (data: Hex) => ({ to: escrow, data });

  /** Does one step for everything in flight. */
  const step = async () => {
    await signer.step();
    await handOver(database, paymentSessions({ openings, settlements }));
  };

  const again = (work: () => Promise<unknown>) => {
    let ended = false;
    const running = (async () => {
      while (!ended) {
        await work();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    return async () => {
      ended = true;
      await running;
    };
  };

  return {
    chain,
    signersNode,
    site,
    escrow,
    payments,
    async wallet(deposited, privateKey = generatePrivateKey()) {
      const account = privateKeyToAccount(privateKey);
      const lower = account.address.toLowerCase() as Hex;
      await chain.pay(account.address, deposited + 10n * ONE);
      if (deposited > 0n) {
        const approve = { abi: erc20Abi, functionName: 'approve' } as const;
        const deposit = { abi: escrowAbi, functionName: 'deposit' } as const;
        await chain.send(account, [
          { to: PATH_USD, data: encodeFunctionData({ ...approve, args: [escrow, deposited] }) },
          ofEscrow(encodeFunctionData({ ...deposit, args: [deposited] })),
        ]);
      }
      return { ...account, lower };
    },
    async sign(wallet, amount, over = {}) {
      const message = {
        payer: wallet.address,
        amount,
        nonce: newNonce(),
        deadline: latestDeadline(),
        ...over,
      };
      const signature = await wallet.signTypedData(holdTypedData(domain, message));
      return { nonce: message.nonce, deadline: Number(message.deadline), signature };
    },
    async withdraw(wallet, amount) {
      const call = { abi: escrowAbi, functionName: 'withdraw' } as const;
      // Two calls make it a transaction of the chain's own type, whose fee is in pathUSD.
      const calls = [amount - 1n, 1n].map((part) => encodeFunctionData({ ...call, args: [part] }));
      await chain.send(wallet, calls.map(ofEscrow));
    },
    async pass(seconds) {
      const transport = http(chain.rpcUrl);
      const clock = createTestClient({ mode: 'anvil', transport });
      await clock.increaseTime({ seconds });
      await clock.mine({ blocks: 1 });
    },
    run: () => again(step),
    async close() {
      await site.close();
      await signersNode.close();
      await chain.close();
      await rm(dataDir, { recursive: true });
    },
  };
}
