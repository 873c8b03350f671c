// @module-tag attack
import { expect, test } from 'vitest';
import {
  APPROVAL_SECONDS,
  isOwnerTicket,
  ownerTicket,
} from '../../../src/agents/address/owner-ticket.js';
import { testSecrets } from '../../support/secrets.js';

const NOW = Date.parse('2026-11-27T12:00:00Z');
const secrets = testSecrets();

test('a ticket is valid for one agent and one use', () => {
  const ticket = ownerTicket(secrets, 'open', 'a1', NOW);
  expect(isOwnerTicket(secrets, 'open', 'a1', ticket, NOW)).toBe(true);
  expect(isOwnerTicket(secrets, 'open', 'a2', ticket, NOW)).toBe(false);
  expect(isOwnerTicket(secrets, 'browser', 'a1', ticket, NOW)).toBe(false);
  expect(isOwnerTicket(testSecrets(), 'open', 'a1', ticket, NOW)).toBe(false);
});

test('a ticket expires, and its expiry cannot be changed', () => {
  const ticket = ownerTicket(secrets, 'browser', 'a1', NOW);
  const end = NOW + APPROVAL_SECONDS * 1_000;
  expect(isOwnerTicket(secrets, 'browser', 'a1', ticket, end - 1)).toBe(true);
  expect(isOwnerTicket(secrets, 'browser', 'a1', ticket, end)).toBe(false);
  const [until = '', proof] = ticket.split('.');
  const later = `${Number(until) + 1}.${proof}`;
  expect(isOwnerTicket(secrets, 'browser', 'a1', later, NOW)).toBe(false);
});
