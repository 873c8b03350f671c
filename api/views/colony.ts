import * as z from 'zod';
import { CHECK_NAMES } from '../../src/fleet/colony-diagnostics.js';
import { SOUL_STATES } from '../../src/fleet/colony-soul.js';
import type { ColonyNode } from '../../src/fleet/colony-tree.js';
import { SPECIALIZATIONS } from '../../src/types/clone-terms.js';

const time = z.iso.datetime().nullable();
const timestamp = z.iso.datetime();

const member = {
  id: z.string(),
  name: z.string(),
  generation: z.int(),
  specialization: z.enum(SPECIALIZATIONS),
  status: z.string().describe('Status of the agent, or `deleted`'),
  createdAt: z.iso.datetime(),
};

export const colonyStatus = z.union([
  z
    .strictObject({
      view: z.literal('tree'),
      timestamp,
      size: z.int(),
      generations: z.int(),
      truncated: z.boolean(),
      roots: z.array(
        z.strictObject({
          ...member,
          children: z.array(z.looseObject({ id: z.string() })).describe('Clones, in the same form'),
        }),
      ),
    })
    .meta({ id: 'ColonyTree' }),
  z
    .strictObject({
      view: z.literal('soul'),
      agentId: z.string(),
      state: z.enum(SOUL_STATES),
      soul: z
        .strictObject({ path: z.string(), content: z.string(), modified: z.iso.datetime() })
        .nullable(),
      memory: z.strictObject({ files: z.int(), bytes: z.int(), lastModified: time }),
      attention: z.strictObject({ lastMessageAt: time, lastHeartbeatAt: time, lastTaskAt: time }),
    })
    .meta({ id: 'ColonySoul' }),
  z
    .strictObject({
      view: z.literal('diagnostics'),
      healthy: z.boolean(),
      checks: z.array(
        z.strictObject({
          name: z.enum(CHECK_NAMES),
          ok: z.boolean(),
          count: z.int(),
          agents: z.array(z.string().meta({ examples: ['3f1c9f9e-6d1a-4c53-9a50-0d0f5f7f2a11'] })),
        }),
      ),
    })
    .meta({ id: 'ColonyDiagnostics' }),
]);

// A type alias, because an interface is no object of any fields.
type ShownNode = Omit<ColonyNode, 'createdAt' | 'children'> & {
  readonly createdAt: string;
  readonly children: ShownNode[];
};

export const presentNode = ({ children, createdAt, ...rest }: ColonyNode): ShownNode => ({
  ...rest,
  createdAt: createdAt.toISOString(),
  children: children.map(presentNode),
});
