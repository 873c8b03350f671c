import { existsSync } from 'node:fs';
import path from 'node:path';
import { LOCAL_EMAIL_KEY } from '../src/agents/email/settings.js';
import { LOCAL_KEY } from '../src/billing/settings.js';
import { LOCAL_TOKEN } from '../src/videos/settings.js';
import { chainFile } from './chain/local-chain.js';
import { secretsFile } from './secrets.js';
import { isSet, type LauncherSettings } from './settings.js';
import { tour } from './tour.js';

/**
 * Returns the text for the person at the terminal once everything runs.
 *
 * @param found.isFirst true to show the backend's key, which is done once; later its place is shown.
 * @param found.ownDocker the `DOCKER_HOST` of the launcher's own engine, which `docker` does not find by
 *   default.
 * @param found.firstIsAdmin true if the next person to register becomes the admin.
 */
export function summary(
  { ai, billing, dataDir, email, http, runDir, videos }: LauncherSettings,
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
    ...(env.PAYPROC_API_URL && billing.secretKey === LOCAL_KEY
      ? [
          `  payments      ${env.PAYPROC_API_URL}  (stand-in for the payment processor: refunds, disputes, subscriptions)`,
        ]
      : []),
    ...(env.EMAIL_API_URL && email.apiKey === LOCAL_EMAIL_KEY
      ? [`  e-mail        ${env.EMAIL_API_URL}  (stand-in for Resend: POST /inbox, GET /sent)`]
      : []),
    ...(env.VIDEO_API_URL && videos.apiToken === LOCAL_TOKEN
      ? [`  videos        ${env.VIDEO_API_URL}  (stand-in for the video provider)`]
      : []),
    `  logs          ${runDir}${path.sep}: api.log, agents-ai.log, summarizer.log, worker.log, payments.log and those of the servers (LOG_LEVEL=debug says more)`,
    ...(firstIsAdmin
      ? [
          '  first admin   the first person to register: no user exists yet (ADMIN_EMAILS names others)',
        ]
      : []),
    '',
    'A tour, to paste into another terminal (or `npm run tour`, which takes it for you):',
    '',
    ...(ownKey
      ? []
      : [`export INTERNAL_API_KEY=${isFirst ? env.INTERNAL_API_KEY : keyIn(dataDir)}`]),
    ...(ownDocker === undefined ? [] : [`export DOCKER_HOST=${ownDocker}`]),
    tour({
      webUrl,
      backendUrl,
      hasProvider: Object.keys(ai.providers).length > 0,
      hasVideos: isSet(env, 'VIDEO_API_TOKEN') && isSet(env, 'VIDEO_MODEL'),
    }),
    '',
    'Ctrl-C stops everything.',
  ];
  return lines.join('\n');
}

/** Returns the shell expression that reads the key. */
const keyIn = (dataDir: string): string =>
  `$(node -p "require('${secretsFile(dataDir)}').internalApiKey")`;
