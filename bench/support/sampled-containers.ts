import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { AgentMeter } from '../../src/agents/metrics/agent-meter.js';
import { AGENT_ROLE, containerName, LABEL } from '../../src/docker/containers/container-spec.js';
import { DockerHost } from '../../src/docker/containers/docker-host.js';
import { ensureTestImage } from '../../test/agent-image/ensure-test-image.js';
import type { BenchEngine } from './engine.js';

const INSTALLATION = 'bench-metrics';

/** Clock ticks a second in `/proc`. */
const TICKS = 100;

const run = promisify(execFile);

/** Seconds of one core for a pass over all containers. */
export interface PassCost {
  readonly ours: number;
  readonly engine: number;
  readonly tookMs: number;
}

/** Starts containers that look like agents to a meter. */
export async function startSampled(
  { docker, host }: BenchEngine,
  count: number,
  atEnd: (cleanup: () => Promise<void>) => void,
) {
  const Image = await ensureTestImage(docker);
  const ids = Array.from({ length: count }, (_, n) => `bench-metrics-${n}`);
  atEnd(async () => {
    for (const id of ids) {
      await docker
        .getContainer(containerName(id))
        .remove({ force: true })
        .catch(() => undefined);
    }
  });
  for (const id of ids) {
    const container = await docker.createContainer({
      name: containerName(id),
      Image,
      Labels: {
        [LABEL.agent]: id,
        [LABEL.role]: AGENT_ROLE,
        [LABEL.owner]: 'bench',
        [LABEL.installation]: INSTALLATION,
      },
    });
    await container.start();
  }
  const meter = new AgentMeter(
    new DockerHost({ dockerHost: host, installation: INSTALLATION }).containers,
  );
  return {
    names: ids.map(containerName),
    /** Measures every container once, as the worker does each minute. */
    async pass(): Promise<PassCost & { readonly samples: number }> {
      const engine = await engineSeconds();
      const [before, began] = [process.cpuUsage(), performance.now()];
      const samples = await meter.measure();
      const tookMs = performance.now() - began;
      const { user, system } = process.cpuUsage(before);
      return {
        samples: samples.length,
        ours: (user + system) / 1e6,
        engine: (await engineSeconds()) - engine,
        tookMs,
      };
    },
    /** The same by `docker stats`. */
    async dockerStats(): Promise<PassCost> {
      const [engine, began] = [await engineSeconds(), performance.now()];
      const { stderr } = await run('bash', [
        '-c',
        `TIMEFORMAT='%U %S'; time docker -H '${host}' stats --no-stream --format json >/dev/null`,
      ]);
      const [user = 0, system = 0] = stderr.trim().split(' ').map(Number);
      const tookMs = performance.now() - began;
      return { ours: user + system, engine: (await engineSeconds()) - engine, tookMs };
    },
  };
}

/** Returns the CPU seconds of all engines' processes since their start. */
async function engineSeconds(): Promise<number> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const seconds = pids.map(async (pid) => {
    // The process may have ended.
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
    const name = /\((.*)\)/.exec(stat)?.[1];
    if (name !== 'dockerd' && name !== 'containerd') return 0;
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return fields.slice(11, 13).reduce((sum, field) => sum + Number(field), 0) / TICKS;
  });
  return (await Promise.all(seconds)).reduce((sum, each) => sum + each, 0);
}
