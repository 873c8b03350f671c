import { createInterface } from 'node:readline/promises';
import { DockerClient } from '../src/docker/containers/docker-client.js';
import { releaseEgress } from '../src/docker/egress/agent-egress.js';
import { LOCAL_HELPER_IMAGE } from '../src/docker/egress/helper-image-name.js';
import { LABEL } from '../src/docker/containers/container-spec.js';
import { findDocker } from '../dev/docker/find-docker.js';
import { findLabelled, removeLabelled } from '../dev/docker/labelled.js';
import { ensureEgressImage } from '../dev/egress-image/ensure-egress-image.js';
import { describeFailure } from '../dev/failure.js';
import { forgetInstallation, goneInstallations } from '../dev/installations.js';
import { say } from '../dev/report.js';

process.exit(await main());

/** Removes Docker objects of installations whose data folder no longer exists, after confirmation. */
async function main(): Promise<number> {
  try {
    const docker = await findDocker();
    if (docker === undefined) {
      say('No Docker engine answers: start Docker, or set DOCKER_HOST.');
      return 1;
    }
    return await clean(docker);
  } catch (error) {
    say(describeFailure(error));
    return 1;
  }
}

async function clean(docker: string): Promise<number> {
  const leftovers = await Promise.all(
    goneInstallations().map(async (installation) => ({
      ...installation,
      things: await findLabelled(docker, `${LABEL.installation}=${installation.name}`),
    })),
  );
  for (const { name, dataDir, things } of leftovers) {
    if (things.length === 0) forgetInstallation(name);
    else say(`Objects of the installation whose data folder was ${dataDir}:`);
    for (const thing of things) say(`  ${thing.kind} ${thing.name}`);
  }
  const found = leftovers.filter(({ things }) => things.length > 0);
  if (found.length === 0) {
    say('Docker has no objects of a deleted installation.');
    return 0;
  }
  if (!(await agreed('Remove all of it, the memories of these agents included? (yes/no) '))) {
    say('No object was removed.');
    return 1;
  }
  for (const { name, things } of found) {
    await removeLabelled(docker, things);
    const client = new DockerClient({ dockerHost: docker, installation: name });
    await releaseEgress(client, await ensureEgressImage(client.docker, LOCAL_HELPER_IMAGE));
    forgetInstallation(name);
  }
  say('Removed.');
  return 0;
}

/** Prompts for confirmation; without a terminal the answer is no. */
async function agreed(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  const answer = await Promise.race([terminal.question(question), closed]);
  terminal.close();
  return answer.trim().toLowerCase() === 'yes';
}
