import { existsSync } from 'node:fs';
import path from 'node:path';
import { chainFile } from './chain/local-chain.js';
import { secretsFile } from './secrets.js';
import { isSet, type LauncherSettings } from './settings.js';
import { tour } from './tour.js';

/**
 * What the person at the terminal reads once everything runs.
 *
 * @param found.isFirst the key of the backend is shown once, and then where it is.
 * @param found.ownDocker the `DOCKER_HOST` of an engine of our own, which no `docker` would look for.
 * @param found.firstIsAdmin whether who registers next becomes the admin.
 */
export function summary(
  { dataDir, http, runDir }: LauncherSettings,
  env: NodeJS.ProcessEnv,
  {
    isFirst,
    ownDocker,
    firstIsAdmin,
  }: {
    readonly isFirst: boolean;
    readonly ownDocker: string | undefined;
    readonly firstIsAdmin: boolean;
  },
): string {
  const { webUrl, backendUrl, ownSummarizerUrl } = http;
  const ownKey = isSet(process.env, 'INTERNAL_API_KEY');
  const lines = [
    '',
    'Agent Platform Service is running.',
    `  web API       ${webUrl}  (reference: ${webUrl}/docs)`,
    `  backend API   ${backendUrl}  (reference: ${backendUrl}/docs)`,
    `  summarizer    ${ownSummarizerUrl}  (reference: ${ownSummarizerUrl}/docs)`,
    ...(env.TEMPORAL_UI_URL ? [`  Temporal UI   ${env.TEMPORAL_UI_URL}`] : []),
    ...(existsSync(chainFile(dataDir))
      ? [`  chain         ${env.CHAIN_RPC_URL}  (accounts with money: ${chainFile(dataDir)})`]
      : []),
    `  logs          ${runDir}${path.sep}: api.log, agents-ai.log, summarizer.log, worker.log, payments.log and those of the servers (LOG_LEVEL=debug says more)`,
    ...(firstIsAdmin
      ? ['  first admin   who registers first: nobody has yet (ADMIN_EMAILS names others)']
      : []),
    '',
    'A tour, to paste into another terminal:',
    '',
    ...(ownKey
      ? []
      : [`export INTERNAL_API_KEY=${isFirst ? env.INTERNAL_API_KEY : keyIn(dataDir)}`]),
    ...(ownDocker === undefined ? [] : [`export DOCKER_HOST=${ownDocker}`]),
    tour({ webUrl, backendUrl }),
    '',
    'Ctrl-C stops everything.',
  ];
  return lines.join('\n');
}

/** What a shell reads the key by. */
const keyIn = (dataDir: string): string =>
  `$(node -p "require('${secretsFile(dataDir)}').internalApiKey")`;
