// Checks that the ledger balances, by itself and against the chain, while the platform runs. The last
// line reports success or the differences.
import { ChainNode } from '../src/money/chain/chain-node.js';
import { chainSettings } from '../src/money/chain/settings.js';
import { Database } from '../src/platform/database/database.js';
import { databaseSettings } from '../src/platform/database/settings.js';
import { readAreas } from '../src/platform/environment/read.js';
import { checkLedgerAndChain } from '../src/money/ledger-check/check-on-chain.js';
import { runScript } from '../src/run-script.js';

await runScript(main);

async function main(): Promise<void> {
  const settings = readAreas({ database: databaseSettings, chain: chainSettings }, process.env);
  const database = new Database(settings.database.url, { maxConnections: 2 });
  try {
    const { chainId, rpcUrl, treasury } = settings.chain;
    const node = new ChainNode({ chainId, url: rpcUrl });
    const report = await checkLedgerAndChain(database, { node, treasury });
    const { accounts, differences, isChainAway, openHolds, transfers } = report;
    const what = [
      counted(accounts, 'account'),
      counted(transfers, 'transfer'),
      counted(openHolds, 'open hold'),
    ].join(', ');
    if (differences.length === 0 && !isChainAway) {
      console.log(`ledger: balanced (${what})`);
      return;
    }
    process.exitCode = 1;
    if (isChainAway) console.log('ledger: the chain cannot be queried');
    if (differences.length === 0) return;
    for (const difference of differences) console.log(difference);
    console.log(`ledger: NOT balanced, ${counted(differences.length, 'difference')} (${what})`);
  } finally {
    await database.close();
  }
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}
