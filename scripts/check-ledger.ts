// Proves that the ledger balances, while the platform runs. The last line says so, or what differs.
import { Database } from '../src/database/database.js';
import { databaseSettings } from '../src/database/settings.js';
import { readAreas } from '../src/environment/read.js';
import { checkLedger, LEDGER_CHECKS } from '../src/ledger/check-ledger.js';
import { runScript } from '../src/run-script.js';

await runScript(main);

async function main(): Promise<void> {
  const settings = readAreas({ database: databaseSettings }, process.env);
  const database = new Database(settings.database.url, { maxConnections: 2 });
  try {
    const { differences, ...counted } = await checkLedger(database, LEDGER_CHECKS);
    const { accounts, openHolds, transfers } = counted;
    const what = `${accounts} accounts, ${transfers} transfers, ${openHolds} open holds`;
    if (differences.length === 0) {
      console.log(`ledger: balanced (${what})`);
      return;
    }
    for (const difference of differences) console.log(difference);
    console.log(`ledger: NOT balanced, ${differences.length} differences (${what})`);
    process.exitCode = 1;
  } finally {
    await database.close();
  }
}
