// Pays and is paid at the platform that `npm start` runs, showing every request: npm run tour:money
import { spawnSync } from 'node:child_process';
import { readLocalChain } from '../dev/chain/local-chain.js';
import { StartFailure } from '../dev/failure.js';
import { MoneyTour } from '../dev/money-tour/money-tour.js';
import { say } from '../dev/report.js';
import { builtProgram } from '../dev/root.js';
import { secretsFile } from '../dev/secrets.js';
import { readSettings } from '../dev/settings.js';
import { runScript } from '../src/run-script.js';

await runScript(main, StartFailure);

async function main(): Promise<void> {
  const { dataDir, http } = readSettings(process.env);
  const chain = readLocalChain(dataDir);
  if (!chain) {
    throw new StartFailure(
      `There is no chain of its own in ${dataDir}: the tour is for npm start without CHAIN_RPC_URL.`,
    );
  }
  const { backendUrl, internalApiKeys, webUrl } = http;
  await new MoneyTour({
    ...{ webUrl, backendUrl, chain },
    internalApiKey: internalApiKeys[0] ?? '',
    secretsFile: secretsFile(dataDir),
  }).go();

  say('\n# What was moved adds up\n\nnpm run check:ledger');
  const program = ['--enable-source-maps', builtProgram('scripts', 'check-ledger.js')];
  process.exitCode = spawnSync(process.execPath, program, { stdio: 'inherit' }).status ?? 1;
}
