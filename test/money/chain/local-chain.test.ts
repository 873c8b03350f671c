import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createPublicClient, http } from 'viem';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startAnvil, type Anvil } from '../../../dev/chain/anvil.js';
import { ChainState } from '../../../dev/chain/chain-state.js';
import {
  forgetLocalChain,
  furnish,
  partiesOf,
  readLocalChain,
  withLocalChain,
  type LocalChain,
} from '../../../dev/chain/local-chain.js';
import { poll } from '../../../dev/poll.js';
import { freePort } from '../../../dev/ports.js';
import { ChainNode } from '../../../src/money/chain/chain-node.js';
import { escrowAbi } from '../../../src/money/chain/payment-escrow.js';
import { PATH_USD } from '../../../src/money/chain/tempo.js';

const CHAIN_ID = 4217;
const NOBODY = { treasury: undefined, operator: undefined };

let folder: string;
let running: Anvil[];
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'aps-chain-'));
  running = [];
});
afterEach(async () => {
  await Promise.all(running.map((anvil) => anvil.process.stop(0)));
  await rm(folder, { recursive: true, force: true, maxRetries: 3 });
});

async function start(): Promise<Anvil> {
  const port = await freePort();
  const dirs = { stateDir: path.join(folder, 'chain'), runDir: path.join(folder, 'run') };
  const anvil = await startAnvil({ ...dirs, port, chainId: CHAIN_ID });
  running.push(anvil);
  return anvil;
}

const HOLD = { holdMs: 3_600_000 };

const furnished = ({ rpcUrl }: Anvil): Promise<LocalChain> =>
  furnish({ rpcUrl, chainId: CHAIN_ID, dataDir: folder }, partiesOf(NOBODY), HOLD);

const nodeOf = ({ rpcUrl }: Anvil) => new ChainNode({ chainId: CHAIN_ID, url: rpcUrl });

describe('chain in a data folder', () => {
  test('a chain in a data folder is set up once from its chain.json and keeps its state after a kill', async () => {
    const first = await start();
    const local = await furnished(first);
    const node = nodeOf(first);
    expect(local).toEqual({
      rpcUrl: first.rpcUrl,
      chainId: CHAIN_ID,
      network: 'tempo',
      token: { address: PATH_USD, symbol: 'pathUSD', decimals: 6 },
      usdc: { address: expect.not.stringContaining(PATH_USD), chainId: CHAIN_ID, decimals: 6 },
      treasury: expect.any(String),
      escrow: expect.any(String),
      operator: expect.any(String),
      accounts: expect.any(Array),
    });
    expect(readLocalChain(folder)).toEqual(local);
    expect((await stat(path.join(folder, 'chain.json'))).mode & 0o777).toBe(0o600);
    const addresses = local.accounts.map(({ address }) => address);
    expect(new Set([...addresses, local.treasury, local.operator]).size).toBeGreaterThan(6);
    expect(await node.tokenBalance(PATH_USD, local.treasury)).toBe(0n);
    expect(await node.tokenBalance(PATH_USD, local.operator)).toBe(1_000_000_000_000n);
    for (const address of addresses) {
      expect(await node.tokenBalance(PATH_USD, address)).toBeGreaterThan(1_000_000_000n);
      expect(await node.tokenBalance(local.usdc.address, address)).toBeGreaterThan(1_000_000_000n);
    }
    const client = createPublicClient({ transport: http(first.rpcUrl) });
    const contract = { address: local.escrow, abi: escrowAbi } as const;
    const says = (functionName: 'token' | 'operator' | 'treasury' | 'holdSeconds') =>
      client.readContract({ ...contract, functionName });
    expect(String(await says('token')).toLowerCase()).toBe(PATH_USD);
    expect(String(await says('operator')).toLowerCase()).toBe(local.operator);
    expect(String(await says('treasury')).toLowerCase()).toBe(local.treasury);
    expect(await says('holdSeconds')).toBe(3_600n);
    const block = await node.block(await node.blockNumber());
    expect(Math.abs(Date.now() / 1_000 - (block?.timestamp ?? 0))).toBeLessThan(3_600);

    // The state is written once a second.
    const height = await node.blockNumber();
    const written = async () => {
      const text = await readFile(path.join(folder, 'chain', 'state.kept.json'), 'utf8').catch(
        () => '{}',
      );
      const { best_block_number: best } = JSON.parse(text) as {
        best_block_number?: string | number;
      };
      return Number(best ?? 0) >= height ? true : undefined;
    };
    expect(await poll(written, { timeoutMs: 60_000 })).toBe(true);
    await first.process.stop(0);
    const second = await start();
    expect(await nodeOf(second).blockNumber()).toBeGreaterThanOrEqual(height);
    const again = await furnished(second);
    expect(again).toEqual({ ...local, rpcUrl: second.rpcUrl });
    expect(await nodeOf(second).blockNumber()).toBe(height);
  });

  test("the local chain's settings are added to the platform's environment without replacing any", async () => {
    const local = await furnished(await start());
    expect(withLocalChain({ WEB_PORT: '1' }, local)).toEqual({
      WEB_PORT: '1',
      CHAIN_RPC_URL: local.rpcUrl,
      CHAIN_CONFIRMATIONS: '1',
      TREASURY_ADDRESS: local.treasury,
      ESCROW_ADDRESS: local.escrow,
      OPERATOR_ADDRESS: local.operator,
      USDC_RPC_URL: local.rpcUrl,
      USDC_ADDRESS: local.usdc.address,
      USDC_CONFIRMATIONS: '1',
    });
    const elsewhere = { USDC_CHAIN_ID: '84532', CHAIN_CONFIRMATIONS: '2' };
    expect(withLocalChain(elsewhere, local)).toEqual({
      ...elsewhere,
      CHAIN_RPC_URL: local.rpcUrl,
      TREASURY_ADDRESS: local.treasury,
      ESCROW_ADDRESS: local.escrow,
      OPERATOR_ADDRESS: local.operator,
    });
    await forgetLocalChain(folder);
    expect(readLocalChain(folder)).toBeUndefined();
  });
});

describe('state of a killed chain', () => {
  const file = () => path.join(folder, 'state.json');

  test('a chain killed during a write restores its last complete state', async () => {
    const state = new ChainState(folder);
    await writeFile(file(), '{"block":1}');
    await state.keep();
    await writeFile(file(), '{"block":2}');
    await state.keep();
    for (const length of [0, 5]) {
      await writeFile(file(), '{"block":3}');
      await truncate(file(), length);
      await state.keep();
      await new ChainState(folder).restore();
      expect(await readFile(file(), 'utf8')).toBe('{"block":2}');
    }
  });

  test('a chain killed after a complete write restores the written state, or none if no write completed', async () => {
    const state = new ChainState(folder);
    await writeFile(file(), '{"block":1}');
    await state.keep();
    await writeFile(file(), '{"block":2}');
    await new ChainState(folder).restore();
    expect(await readFile(file(), 'utf8')).toBe('{"block":2}');
    await rm(path.join(folder, 'state.kept.json'));
    await truncate(file(), 3);
    await new ChainState(folder).restore();
    await expect(stat(file())).rejects.toThrow('ENOENT');
  });
});
