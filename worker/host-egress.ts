import type { Logger } from 'pino';
import { DockerClient } from '../src/docker/containers/docker-client.js';
import { AgentEgress } from '../src/docker/egress/agent-egress.js';
import { HostEgress, type EgressState } from '../src/docker/egress/host-egress.js';
import { reportNotice } from '../src/platform/process/process-lifecycle.js';
import type { Settings } from '../src/settings.js';

export function openHostEgress(settings: Settings, log: Logger): HostEgress {
  const { aiPort, egress, egressAllow: allow, egressImage: image, subnetPool } = settings.agents;
  const { dockerHost } = settings.containers;
  const client = new DockerClient({ dockerHost, installation: settings.secrets.installation });
  const guarded = egress === 'guarded';
  return new HostEgress({
    egress: new AgentEgress(client, { subnetPool, aiPort, allow, image }),
    guarded,
    required: guarded && settings.process.production,
    log,
    onChange(state) {
      const notice = noticeOf(state);
      if (notice !== undefined) reportNotice(notice);
    },
  });
}

function noticeOf({ status, reason }: EgressState): string | undefined {
  if (status === 'unknown') return undefined;
  const why = reason === null ? '' : ` (${reason})`;
  if (status === 'guarded') {
    return `Agents reach the internet and the AI listener, and no private network${why}.`;
  }
  return (
    `Agents reach private networks and this machine's own addresses: ${reason}. ` +
    'Headers of callers on this machine are not trusted (docs/security.md).'
  );
}
