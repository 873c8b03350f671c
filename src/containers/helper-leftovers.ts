import { LABEL } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { removeLeftovers } from './throw-away.js';

/** By which helpers of this installation are found. */
export const helperLabels = ({ installation }: Pick<DockerClient, 'installation'>): string[] => [
  `${LABEL.installation}=${installation}`,
  LABEL.files,
];

/** Removes what has a volume open that is to be copied or removed: what it is at is told as failed. */
export const removeHelpersOf = (client: DockerClient, volume: string): Promise<void> =>
  removeLeftovers(client, { label: helperLabels(client), volume: [volume] }, 0);
