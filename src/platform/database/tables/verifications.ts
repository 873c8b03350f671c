import { literal, Op } from 'sequelize';
import type { Attestation } from '../../../types/attestation.js';
import type { Check, VerificationState } from '../../../types/verification.js';
import { ownedThrough } from '../schema/policies.js';
import {
  boolean,
  index,
  json,
  key,
  nullable,
  table,
  text,
  timestamp,
  unique,
  withDefault,
} from '../schema/table.js';

const IS_OPEN = { state: { [Op.in]: ['measuring', 'signing'] } };

const now = () => withDefault(timestamp(), literal('now()'));

/** Measurements of agents, with their evidence and attestation. */
export const agentVerifications = table(
  'agent_verifications',
  {
    id: key(text()),
    agentId: text(),
    userId: text(),
    state: withDefault(text<VerificationState>(), 'measuring'),
    verified: nullable(boolean()),
    checks: nullable(json<readonly Check[]>()),
    /** Id of the image that the agent's container has. */
    image: nullable(text()),
    attestation: nullable(json<Attestation>()),
    measuredAt: nullable(timestamp()),
    dueAt: now(),
    createdAt: now(),
  },
  [
    index('agent_verifications_agent', ['agent_id']),
    index('agent_verifications_user', ['user_id', 'id']),
    unique('agent_verifications_current_key', ['agent_id'], { state: 'current' }),
    unique('agent_verifications_open_key', ['agent_id'], IS_OPEN),
    index('agent_verifications_due', ['due_at'], IS_OPEN),
    index('agent_verifications_created', ['created_at'], { state: { [Op.ne]: 'current' } }),
  ],
  ownedThrough('user_id'),
);
