// Makes and receives payments on the platform that `npm start` runs, and shows every request: npm run
// tour:money, or a part of it: -- session, -- agents
import { spawnSync } from 'node:child_process';
import { readLocalChain } from '../dev/chain/local-chain.js';
import { StartFailure } from '../dev/failure.js';
import { MoneyTour, PARTS } from '../dev/tours/money-tour.js';
import { say } from '../dev/report.js';
import { builtProgram } from '../dev/root.js';
import { secretsFile } from '../dev/secrets.js';
import { readSettings } from '../dev/settings.js';
import { runScript } from '../src/run-script.js';

await runScript(main, StartFailure);

async function main(): Promise<void> {
  const named = process.argv.slice(2);
  const unknown = named.find((name) => !PARTS.some((part) => part === name));
  if (unknown !== undefined) {
    throw new StartFailure(
      `The tour has no part ${unknown}: its parts are ${PARTS.join(' and ')}.`,
    );
  }
  const parts = named.length === 0 ? PARTS : PARTS.filter((part) => named.includes(part));
  const { dataDir, http } = readSettings(process.env);
  const chain = readLocalChain(dataDir);
  if (!chain) {
    throw new StartFailure(
      `There is no local chain in ${dataDir}: the tour needs npm start without CHAIN_RPC_URL.`,
    );
  }
  const { backendUrl, internalApiKeys, webUrl } = http;
  await new MoneyTour({
    webUrl,
    backendUrl,
    chain,
    internalApiKey: internalApiKeys[0] ?? '',
    secretsFile: secretsFile(dataDir),
  }).go(parts);

  say('\n# The sums of all movements balance\n\nnpm run check:ledger');
  const program = ['--enable-source-maps', builtProgram('scripts', 'check-ledger.js')];
  process.exitCode = spawnSync(process.execPath, program, { stdio: 'inherit' }).status ?? 1;
}
