import { isIPv4 } from 'node:net';
import { availableParallelism } from 'node:os';
import {
  IMAGE_TAG,
  isByDigest,
  isLocalImage,
  isPinned,
  runtimeImages,
  type RuntimeVersion,
} from '../../docker/containers/image-name.js';
import type { AllowedNetwork } from '../../docker/egress/egress-rules.js';
import { LOCAL_HELPER_IMAGE } from '../../docker/egress/helper-image-name.js';
import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import {
  boolean,
  choice,
  count,
  duration,
  entriesOf,
  label,
  port,
  portRange,
  text,
  textAs,
} from '../../platform/environment/types.js';
import { startsOn } from '../watchdog/host-limiters.js';

/** The OpenClaw release of new agents; `agent-runtime/` builds the image of exactly this release. */
export const AGENT_RUNTIME_VERSION = '2026.9.6';

/** The name of the only host of an installation. */
const USUAL_HOST = 'local';

const versionList = textAs(
  'releases, separated by commas, each with or without a digest like 2026.9.6@sha256:<64 hex digits>',
  (value): readonly RuntimeVersion[] | undefined => {
    const versions = entriesOf(value).map((entry) => {
      const [, version = '', digest] = /^([^@]+)(?:@(sha256:[0-9a-f]{64}))?$/.exec(entry) ?? [];
      return { version, digest };
    });
    return versions.every(({ version }) => IMAGE_TAG.test(version)) ? versions : undefined;
  },
);

/** IPv4 networks and addresses, each optionally limited to a port. */
const allowedNetworks = textAs(
  'networks or addresses like 10.1.0.0/16 or 10.1.2.3:5432, separated by commas',
  (value): AllowedNetwork[] | undefined => {
    const read = entriesOf(value).map((entry) => {
      const [, address = '', bits, digits] =
        /^([\d.]+)(?:\/(\d{1,2}))?(?::(\d{1,5}))?$/.exec(entry) ?? [];
      const port = digits === undefined ? undefined : Number(digits);
      const isRight =
        isIPv4(address) && Number(bits ?? 32) <= 32 && (port ?? 1) >= 1 && (port ?? 1) < 65_536;
      return isRight ? { network: `${address}/${bits ?? 32}`, port } : undefined;
    });
    return read.every((each) => each !== undefined) ? read : undefined;
  },
);

export const agentSettings = area(
  'Agents',
  () => ({
    runtimeImage: variable(
      'AGENT_RUNTIME_IMAGE',
      text.optional(),
      'image of new agents, in production with its digest; an image without a registry must exist on the engine, and is never pulled',
      { whenUnset: "OpenClaw's, of that version" },
    ),
    runtimeVersion: variable(
      'AGENT_RUNTIME_VERSION',
      text.prefault(AGENT_RUNTIME_VERSION),
      'release of OpenClaw that new agents run',
    ),
    versions: variable(
      'AGENT_VERSIONS',
      versionList.prefault(''),
      'further releases that agents may be updated to, in production with their digests',
      { whenUnset: 'none' },
    ),
    host: variable(
      'AGENT_HOST',
      label.optional(),
      'name of the Docker host on whose machine the worker or API process runs',
      { whenUnset: '`local`; none for API processes in production' },
    ),
    hostCapacity: variable(
      'AGENT_HOST_CAPACITY',
      count({ least: 0, most: 65_535 }).optional(),
      'maximum number of agents on the Docker host; `0`: no new agents',
      { whenUnset: 'derived from the memory of the machine' },
    ),
    hostTakeover: variable(
      'AGENT_HOST_TAKEOVER',
      text.optional(),
      'id of a permanently lost engine, from which this engine takes over the name of the host',
    ),
    startsAtOnce: variable(
      'AGENT_STARTS_AT_ONCE',
      count({ most: 1_000 }).optional(),
      'maximum number of agents of the host that start at a time; one owner gets at most half of them',
      { whenUnset: 'two for each core, at least four' },
    ),
    portRange: variable(
      'AGENT_PORT_RANGE',
      portRange.prefault('19100-19999'),
      "loopback ports of the agents' gateways",
    ),
    subnetPool: variable(
      'AGENT_SUBNET_POOL',
      textAs('a /16 network like 10.231.0.0/16', (value) =>
        /^\d+\.\d+\.0\.0\/16$/.test(value) && isIPv4(value.slice(0, -3)) ? value : undefined,
      ).prefault('10.231.0.0/16'),
      'network from which the network of each agent gets a /28',
    ),
    egress: variable(
      'AGENT_EGRESS',
      choice('guarded', 'open').prefault('guarded'),
      '`guarded`: rules block access from agents to private networks and the host; `open`: no rules are set, so your own firewall must block such access',
    ),
    egressImage: variable(
      'AGENT_EGRESS_IMAGE',
      text.prefault(LOCAL_HELPER_IMAGE),
      'image that sets the rules of `AGENT_EGRESS`, built from `dev/egress-image/Dockerfile`: in production a name with its digest, or the id of an image that was built on the Docker host; `npm start` builds one',
    ),
    egressAllow: variable(
      'AGENT_EGRESS_ALLOW',
      allowedNetworks.prefault(''),
      'networks and addresses that agents may reach besides the public internet; addresses of the host itself need a port',
    ),
    aiHost: variable(
      'AGENT_AI_HOST',
      text.optional(),
      'listen address for the AI calls of agents',
      {
        whenUnset: "the containers' bridge",
      },
    ),
    aiPort: variable('AGENT_AI_PORT', port.prefault('3002'), 'port for the AI calls of agents'),
    aiMetricsPort: variable(
      'AGENT_AI_METRICS_PORT',
      port.prefault('9466'),
      "port of `/metrics`, `/livez` and `/readyz` of the process that answers agents' AI calls",
    ),
    provisioningEnabled: variable(
      'PROVISIONING_ENABLED',
      boolean.prefault('true'),
      '`false`: no new agents (503)',
    ),
    watchdog: {
      checkIntervalMs: variable(
        'WATCHDOG_CHECK_INTERVAL',
        duration.prefault('120s'),
        'interval between two checks of a healthy agent',
      ),
      degradedCheckIntervalMs: variable(
        'WATCHDOG_DEGRADED_CHECK_INTERVAL',
        duration.prefault('5s'),
        'interval between two checks of an agent that is not healthy',
      ),
      autoRepair: variable(
        'WATCHDOG_AUTO_REPAIR',
        text.transform((value) => value !== 'false').prefault('true'),
        '`false`: unhealthy agents are reported but not repaired',
      ),
      maxRepairAttempts: variable(
        'WATCHDOG_MAX_REPAIR_ATTEMPTS',
        count().prefault('2'),
        'maximum number of repair attempts, after which the agent stays as it is',
      ),
      startupFailureThreshold: variable(
        'WATCHDOG_STARTUP_FAILURE_THRESHOLD',
        count().prefault('3'),
        'number of failed checks after which a start has failed',
      ),
      crashLoopThreshold: variable(
        'WATCHDOG_CRASH_LOOP_THRESHOLD',
        count().prefault('3'),
        'number of crashes within `WATCHDOG_CRASH_LOOP_WINDOW` that make a crash loop',
      ),
      crashLoopWindowMs: variable(
        'WATCHDOG_CRASH_LOOP_WINDOW',
        duration.prefault('5m'),
        'time for which a crash counts',
      ),
    },
  }),
  ({ host, ...values }, { production }) => ({
    ...values,
    host: host ?? USUAL_HOST,
    /** True if an API process uses the Docker of its own machine. */
    isApiBesideHost: host !== undefined || !production,
    startsAtOnce: values.startsAtOnce ?? startsOn(availableParallelism()),
  }),
  (values, { production }) => {
    const { usual, versions } = runtimeImages(values);
    const isUnknown = (image: string) => !isLocalImage(image) && !isPinned(image);
    return [
      ...(production && isUnknown(usual)
        ? [
            'AGENT_RUNTIME_IMAGE must end in the digest of the image in production (@sha256:…), or ' +
              'AGENT_VERSIONS have AGENT_RUNTIME_VERSION with it',
          ]
        : []),
      ...(production && [...versions.values()].some((image) => image !== usual && isUnknown(image))
        ? ['AGENT_VERSIONS must have every release with its digest in production']
        : []),
      // Its containers have NET_ADMIN on the host, and a name without a digest may later refer to another
      // image.
      ...(production && values.egress === 'guarded' && !isByDigest(values.egressImage)
        ? [
            'AGENT_EGRESS_IMAGE must end in the digest of the image in production (@sha256:…), or be ' +
              'the id (sha256:…) of an image that was built on the Docker host',
          ]
        : []),
    ];
  },
);

export type AgentSettings = SettingsOf<typeof agentSettings>;
