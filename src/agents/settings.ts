import { isIPv4 } from 'node:net';
import { availableParallelism } from 'node:os';
import { area, variable, type SettingsOf } from '../environment/area.js';
import {
  boolean,
  count,
  duration,
  label,
  port,
  portRange,
  text,
  textAs,
} from '../environment/types.js';

/** The OpenClaw release that new agents run; `agent-runtime/` builds the image of just this one. */
export const AGENT_RUNTIME_VERSION = '2026.9.6';

export const agentSettings = area(
  'Agents',
  () => ({
    runtimeImage: variable(
      'AGENT_RUNTIME_IMAGE',
      text.optional(),
      'the image of new agents; a local tag is used as it is',
      { otherwise: "OpenClaw's, of that version" },
    ),
    runtimeVersion: variable(
      'AGENT_RUNTIME_VERSION',
      text.prefault(AGENT_RUNTIME_VERSION),
      'the release of OpenClaw that new agents run',
    ),
    host: variable(
      'AGENT_HOST',
      label.prefault('local'),
      'the Docker host that a worker, or an API process, stands beside',
    ),
    hostCapacity: variable(
      'AGENT_HOST_CAPACITY',
      count({ least: 0, most: 65_535 }).optional(),
      'most agents on that host; `0`: no new ones',
      { otherwise: 'ports in `AGENT_PORT_RANGE`' },
    ),
    hostTakeover: variable(
      'AGENT_HOST_TAKEOVER',
      text.optional(),
      'id of an engine gone for good, from which the name is taken',
    ),
    startsAtOnce: variable(
      'AGENT_STARTS_AT_ONCE',
      count({ most: 1_000 }).optional(),
      'agents of that host that are starting at a time, at most half of them of one owner',
      { otherwise: 'two for each core, four at least' },
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
      "out of which each agent's network takes a /28",
    ),
    aiHost: variable('AGENT_AI_HOST', text.optional(), "where agents' AI calls are listened for", {
      otherwise: "the containers' bridge",
    }),
    aiPort: variable('AGENT_AI_PORT', port.prefault('3002'), 'and its port'),
    domain: variable('AGENT_DOMAIN', text.prefault('localhost'), '`<subdomain>.<domain>` in `url`'),
    provisioningEnabled: variable(
      'PROVISIONING_ENABLED',
      boolean.prefault('true'),
      '`false`: no new agents (503)',
    ),
    watchdog: {
      checkIntervalMs: variable(
        'WATCHDOG_CHECK_INTERVAL',
        duration.prefault('120s'),
        'between two checks of a healthy agent',
      ),
      degradedCheckIntervalMs: variable(
        'WATCHDOG_DEGRADED_CHECK_INTERVAL',
        duration.prefault('5s'),
        'the same of one that is not well',
      ),
      autoRepair: variable(
        'WATCHDOG_AUTO_REPAIR',
        text.transform((value) => value !== 'false').prefault('true'),
        '`false`: agents that are not well are only told of',
      ),
      maxRepairAttempts: variable(
        'WATCHDOG_MAX_REPAIR_ATTEMPTS',
        count().prefault('2'),
        'attempts before an agent is left alone',
      ),
      startupFailureThreshold: variable(
        'WATCHDOG_STARTUP_FAILURE_THRESHOLD',
        count().prefault('3'),
        'checks after a start before it has failed',
      ),
      crashLoopThreshold: variable(
        'WATCHDOG_CRASH_LOOP_THRESHOLD',
        count().prefault('3'),
        'so many crashes in the window are a crash loop',
      ),
      crashLoopWindowMs: variable(
        'WATCHDOG_CRASH_LOOP_WINDOW',
        duration.prefault('5m'),
        'for how long a crash counts',
      ),
    },
  }),
  (values) => {
    const { first, last } = values.portRange;
    return {
      ...values,
      hostCapacity: values.hostCapacity ?? last - first + 1,
      startsAtOnce: values.startsAtOnce ?? Math.max(4, 2 * availableParallelism()),
    };
  },
);

export type AgentSettings = SettingsOf<typeof agentSettings>;
