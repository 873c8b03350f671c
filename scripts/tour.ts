// Uses an agent and the other parts of the platform that `npm start` runs, and shows every request:
// npm run tour
import { readLocalChain } from '../dev/chain/local-chain.js';
import { StartFailure } from '../dev/failure.js';
import { secretsFile } from '../dev/secrets.js';
import { readSettings } from '../dev/settings.js';
import { AgentTour } from '../dev/tours/agent-tour.js';
import { runScript } from '../src/run-script.js';

await runScript(main, StartFailure);

async function main(): Promise<void> {
  const { dataDir, http } = readSettings(process.env);
  const { backendUrl, internalApiKeys, webUrl } = http;
  await new AgentTour({
    webUrl,
    backendUrl,
    internalApiKey: internalApiKeys[0] ?? '',
    secretsFile: secretsFile(dataDir),
    chain: readLocalChain(dataDir),
  }).go();
}
