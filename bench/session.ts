// Measures opening and closing of payment sessions, over the contract's bare calls.
import { parseArgs } from 'node:util';
import { formatAmount } from '../src/types/money.js';
import type { SignedHold } from '../src/money/sessions/escrow.js';
import { BareEscrow } from './support/bare-escrow.js';
import { runBenchmark } from './support/cleanups.js';
import { Client } from './support/client.js';
import { BenchPlatform } from './support/platform.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Maximum ratio to the contract call. */
const AIM = 1.3;

/** Base units of each session. */
const DEPOSIT = 1_000_000n;

const { values: options } = parseArgs({
  options: {
    /** Sessions that are opened and closed one after the other. */
    sessions: { type: 'string', default: '21' },
  },
});

await runBenchmark(async (atEnd) => {
  const platform = await BenchPlatform.withoutContainers(atEnd);
  await printCalls(platform);
});

/** Measures each call in turns with the contract's own call. */
async function printCalls({ chain, webUrl }: BenchPlatform): Promise<void> {
  const escrow = new BareEscrow(chain);
  const count = Number(options.sessions) + 1;
  await escrow.fill(DEPOSIT * BigInt(count));
  const web = new Client(webUrl, {});
  const took = {
    open: [] as number[],
    bareOpen: [] as number[],
    close: [] as number[],
    bareClose: [] as number[],
  };
  const timed = async <T>(into: number[], work: () => Promise<T>): Promise<T> => {
    const began = performance.now();
    const result = await work();
    into.push(performance.now() - began);
    return result;
  };
  for (let n = 0; n < count; n++) {
    const [wanted, bare] = [
      await escrow.sign(DEPOSIT, 'platform'),
      await escrow.sign(DEPOSIT, 'here'),
    ];
    const { session } = await timed(took.open, () => opened(web, wanted));
    await timed(took.bareOpen, () => escrow.open(bare));
    await timed(took.close, () => closed(web, session.id));
    await timed(took.bareClose, () => escrow.close(bare));
  }
  web.close();
  // The first measurement of each is dropped: its code is not compiled and the signer's workflow is not
  // running.
  const warm = (times: readonly number[]) => median(times.slice(1));
  const [open, bareOpen] = [warm(took.open), warm(took.bareOpen)];
  const [close, bareClose] = [warm(took.close), warm(took.bareClose)];
  console.log(`\nMedians of ${options.sessions} sessions, in ms:\n`);
  printTable(
    ['way', 'platform', "the contract's call", 'over it', 'aim'],
    [
      ['opening', figure(open), figure(bareOpen), figure(open / bareOpen), AIM],
      ['closing', figure(close), figure(bareClose), figure(close / bareClose), AIM],
    ],
  );
}

async function opened(web: Client, { deadline, nonce, payer, signature }: SignedHold) {
  const authorization = { nonce, deadline: Number(deadline), signature };
  const asked = { address: payer, deposit: formatAmount(DEPOSIT), authorization };
  return web.json<{ session: { id: string } }>('POST', '/api/wallet/sessions', asked);
}

async function closed(web: Client, id: string): Promise<void> {
  const { status, text } = await web.send('DELETE', `/api/wallet/sessions?sessionId=${id}`);
  if (status !== 200) throw new Error(`A session was not closed: ${status} ${text}`);
}
