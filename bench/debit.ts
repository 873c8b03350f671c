// Measures debits of payment sessions over a bare Koa handler that updates a row twice for each debit.
import { parseArgs } from 'node:util';
import { ChainNode } from '../src/money/chain/chain-node.js';
import { PaymentNode } from '../src/money/payments/payment-node.js';
import { forkUntilMessage } from './support/child.js';
import { runBenchmark } from './support/cleanups.js';
import { makeFolder } from './support/folder.js';
import { loadCells, measureLoad, type Round } from './support/measured-load.js';
import { startPaidApi } from './support/paid-api.js';
import { openSessions } from './support/paying-sessions.js';
import { figure, median } from './support/statistics.js';
import { printTable } from './support/table.js';

/** Minimum share of the bare handler's rate. */
const AIM_DEBITS = 0.7;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '4' },
    connections: { type: 'string', default: '16' },
    sessions: { type: 'string', default: '100' },
    // Long enough for V8 to compile the measured code.
    warmup: { type: 'string', default: '10' },
  },
});

/** A server to send debits to. */
interface Way {
  readonly url: string;
  readonly pid: number;
  readonly body: unknown;
  /** Headers of each paying session, used in turn. */
  readonly headers: readonly Readonly<Record<string, string>>[];
}

await runBenchmark(async (atEnd) => {
  const folder = await makeFolder(atEnd);
  const api = await startPaidApi(folder, atEnd);
  const { chainId, rpcUrl } = api.chain;
  const hash = await someTransaction(new ChainNode({ chainId, url: rpcUrl }));
  const sessions = await openSessions(api.servingUrl, Number(options.sessions));
  const bare = await forkUntilMessage<{ port: number }>('bare-debits', [
    ...[api.ownerUrl, rpcUrl, String(chainId), options.sessions],
  ]);
  atEnd(() => void bare.child.kill());
  const bareUrl = `http://127.0.0.1:${bare.message.port}`;
  const ofBare = { pid: bare.child.pid ?? 0, body: { hash } };

  const rows: (string | number)[][] = [];
  for (const count of [1, sessions.length]) {
    const accounts = sessions.slice(0, count).map((_, index) => ({ 'x-account': `${index + 1}` }));
    const ways: readonly Way[] = [
      {
        url: `${api.webUrl}/api/v1/gateway`,
        pid: api.pid,
        body: { plugin: 'chain', action: 'transfers', input: { hash } },
        headers: sessions.slice(0, count),
      },
      { ...ofBare, url: `${bareUrl}/`, headers: accounts },
      { ...ofBare, url: `${bareUrl}/served`, headers: accounts },
    ];
    const rounds: Round[][] = ways.map(() => []);
    for (const way of ways) await load(way, options.warmup);
    for (let round = 0; round < Number(options.rounds); round++) {
      for (const [index, way] of ways.entries()) {
        rounds[index]?.push(await load(way, options.seconds));
      }
    }
    const [ours = [], updates = [], served = []] = rounds;
    const rate = (list: readonly Round[]) => median(list.map(({ perSecond }) => perSecond));
    const of = count === 1 ? 'one session' : `${count} sessions`;
    rows.push([...loadCells(`debits of ${of}`, ours), '', '']);
    rows.push([
      ...loadCells('  bare Koa handler', updates),
      figure(rate(ours) / rate(updates)),
      AIM_DEBITS,
    ]);
    rows.push([
      ...loadCells('  which asks the node, too', served),
      figure(rate(ours) / rate(served)),
      '',
    ]);
  }
  console.log(
    `\n${options.connections} connections, ` +
      `medians of ${options.rounds} rounds of ${options.seconds} s in turns:\n`,
  );
  printTable(
    ['way', 'a second', 'p50 ms', 'p99 ms', "server's CPU, µs each", 'debits over it', 'aim'],
    rows,
  );
});

/** Returns a transaction whose transfers can be requested. */
async function someTransaction(chain: ChainNode): Promise<string> {
  const node = new PaymentNode(chain);
  for (let block = await node.head(); block > 0; block--) {
    const [hash] = (await node.hashesOf(block)) ?? [];
    if (hash) return hash;
  }
  throw new RangeError('The chain has no transaction yet');
}

function load({ body, headers, pid, url }: Way, seconds: string): Promise<Round> {
  const sent = [JSON.stringify(body), JSON.stringify(headers)];
  return measureLoad(pid, [url, '', options.connections, seconds, 'many', ...sent]);
}
