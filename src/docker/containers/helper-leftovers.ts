import { DockerRefusedError, DockerUnavailableError } from './container-errors.js';
import { LABEL } from './container-spec.js';
import type { DockerClient } from './docker-client.js';

/** By which helpers of this installation are found. */
export const helperLabels = ({ installation }: Pick<DockerClient, 'installation'>): string[] => [
  `${LABEL.installation}=${installation}`,
  LABEL.files,
];

/** Milliseconds for a helper to break off what it is at, and to give back git's locks. */
const ENDS_WITHIN_MS = 10_000;

/** Has a helper end, by force when it does not, and takes it away. One that is gone is well. */
export async function endHelper(client: DockerClient, id: string): Promise<void> {
  const isEnding = await client
    .call((docker, bound) => docker.getContainer(id).kill({ signal: 'SIGTERM', ...bound }))
    .then(
      () => true,
      (error: unknown) => {
        if (error instanceof DockerRefusedError) return false; // it does not run
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
        if (!(error instanceof DockerUnavailableError)) throw error; // it hangs
      });
  }
  await client.callUnless([404, 409], (docker, bound) =>
    docker.getContainer(id).remove({ force: true, v: true, ...bound }),
  );
}

/** Removes what has a volume open, or is on a network, that is to go: what it is at is told as failed. */
export async function removeHelpersOf(
  client: DockerClient,
  what: { readonly volume: string } | { readonly network: string },
): Promise<void> {
  const [kind, name] = 'volume' in what ? ['volume', what.volume] : ['network', what.network];
  const filters = { label: helperLabels(client), [kind]: [name] };
  const found = await client.call((docker, bound) =>
    docker.listContainers({ all: true, filters, ...bound }),
  );
  await Promise.all(found.map(({ Id: id }) => endHelper(client, id)));
}
