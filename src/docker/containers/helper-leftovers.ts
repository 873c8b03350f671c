import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';
import { LABEL } from './container-spec.js';
import type { DockerClient } from './docker-client.js';
import { removeContainer } from './throw-away.js';

export const helperLabels = ({ installation }: Pick<DockerClient, 'installation'>): string[] => [
  `${LABEL.installation}=${installation}`,
  LABEL.files,
];

/** Milliseconds for a helper to abort its work and release git's locks. */
const ENDS_WITHIN_MS = 10_000;

/** Stops a helper, by force if necessary, and removes it. A missing helper is no error. */
export async function endHelper(client: DockerClient, id: string): Promise<void> {
  const isEnding = await client
    .call((docker, bound) => docker.getContainer(id).kill({ signal: 'SIGTERM', ...bound }))
    .then(
      () => true,
      (error: unknown) => {
        if (error instanceof DockerRefusedError) return false; // it is not running
        throw error;
      },
    );
  if (isEnding) {
    await client
      .callUnless(
        [404],
        (docker, bound) => docker.getContainer(id).wait({ condition: 'removed', ...bound }),
        ENDS_WITHIN_MS,
      )
      .catch((error: unknown) => {
        if (!(error instanceof DockerUnavailableError)) throw error; // the helper hangs
      });
  }
  await removeContainer(client, id);
}

/** Removes the helpers on a volume or network that is to be removed; their requests in flight fail. */
export async function removeHelpersOf(
  client: DockerClient,
  what: { readonly volume: string } | { readonly network: string },
): Promise<void> {
  const [kind, name] = 'volume' in what ? ['volume', what.volume] : ['network', what.network];
  const filters = { label: helperLabels(client), [kind]: [name] };
  const found = await client.listContainers({ all: true, filters });
  await Promise.all(found.map(({ Id: id }) => endHelper(client, id)));
}
