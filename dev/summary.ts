import path from 'node:path';
import { isSet, type LauncherSettings } from './settings.js';
import { tour } from './tour.js';

/**
 * What the person at the terminal reads once everything runs.
 *
 * @param ownDocker the `DOCKER_HOST` of an engine of our own, which no `docker` would look for.
 */
export function summary(
  { http, runDir }: LauncherSettings,
  env: NodeJS.ProcessEnv,
  ownDocker: string | undefined,
): string {
  const { webUrl, backendUrl } = http;
  const ownKey = isSet(process.env, 'INTERNAL_API_KEY');
  const lines = [
    '',
    'Agent Platform Service is running.',
    `  web API       ${webUrl}  (reference: ${webUrl}/docs)`,
    `  backend API   ${backendUrl}  (reference: ${backendUrl}/docs)`,
    ...(env.TEMPORAL_UI_URL ? [`  Temporal UI   ${env.TEMPORAL_UI_URL}`] : []),
    `  logs          ${runDir}${path.sep}: api.log, worker.log and those of the engines (LOG_LEVEL=debug says more)`,
    '',
    'A tour, to paste into another terminal:',
    '',
    ...(ownKey ? [] : [`export INTERNAL_API_KEY=${env.INTERNAL_API_KEY}`]),
    ...(ownDocker === undefined ? [] : [`export DOCKER_HOST=${ownDocker}`]),
    tour({ webUrl, backendUrl }),
    '',
    'Ctrl-C stops everything.',
  ];
  return lines.join('\n');
}
