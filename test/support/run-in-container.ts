import { text } from 'node:stream/consumers';
import type Docker from 'dockerode';

/** What a script of Node prints that runs in a container, as the container's own user. */
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
