import { Context } from '@temporalio/activity';
import type { OwnerTurns } from '../src/agents/chat/owner-turns.js';
import type { AgentEmails } from '../src/agents/email/agent-emails.js';
import type { HostLimiters } from '../src/agents/watchdog/host-limiters.js';
import { asApplicationFailure } from './failures.js';
import { askInTurn, endLostTurn } from './owner-turns.js';

/** Creates the activities that only read and write rows of e-mails. A mail is named by its row. */
export const createEmailRecordActivities = (
  emails: Pick<AgentEmails, 'finish' | 'giveUp' | 'question'>,
  turns: Pick<OwnerTurns, 'endOf'>,
) => ({
  giveUpEmail: (id: string) => asApplicationFailure(() => emails.giveUp(id)),
  endLostEmailTurn: endLostTurn(turns, emails),
});

export type EmailRecordActivities = ReturnType<typeof createEmailRecordActivities>;

/** Creates the activities that call the e-mail provider. */
export const createEmailActivities = (emails: Pick<AgentEmails, 'read' | 'send'>) => ({
  readEmail: (id: string) =>
    asApplicationFailure(() => emails.read(id, Context.current().cancellationSignal)),
  sendEmailAnswer: (id: string) =>
    asApplicationFailure(() => emails.send(id, Context.current().cancellationSignal)),
});

export type EmailActivities = ReturnType<typeof createEmailActivities>;

interface HostParts {
  readonly emails: Pick<AgentEmails, 'finish' | 'question'>;
  readonly turns: Pick<OwnerTurns, 'ask'>;
  readonly limiters: Pick<HostLimiters, 'turns'>;
}

/** Creates the activity of the worker on the agent's host. A mail waits for an agent that starts. */
export const createEmailTurnActivities = ({ emails, ...parts }: HostParts) => ({
  askForEmail: askInTurn(parts, emails, { isPatient: true }),
});

export type EmailTurnActivities = ReturnType<typeof createEmailTurnActivities>;
