import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';

/** Runs a Node script in a container as the container's user. @returns its output. */
export async function runInContainer(
  docker: Docker,
  container: string,
  script: string,
): Promise<string> {
  const exec = await docker
    .getContainer(container)
    .exec({ Cmd: ['node', '-e', script], AttachStdout: true, AttachStderr: true, Tty: true });
  const output = await text(await exec.start({ Tty: true }));
  return output.replaceAll('\r\n', '\n');
}
