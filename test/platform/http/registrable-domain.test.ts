import { expect, test } from 'vitest';
import { registrableDomain } from '../../../src/platform/http/registrable-domain.js';

test.each([
  ['app.example.com', 'example.com'],
  ['Example.COM.', 'example.com'],
  ['agents.shop.co.uk', 'shop.co.uk'],
  ['a.b.com.br', 'b.com.br'],
  ['co.uk', 'co.uk'],
  ['app.example.de', 'example.de'],
])('finds the registered name of %s, %s', (host, domain) => {
  expect(registrableDomain(host)).toBe(domain);
});

test.each(['localhost', '192.0.2.1', '[2001:db8::1]'])('finds none of %s', (host) => {
  expect(registrableDomain(host)).toBeUndefined();
});
