"""What is done in Redis or Valkey at once: scripts that check the writer's token first.

A script is given texts as Arrow has them, all in one and where each ends, so that no argument is made for each row.
"""

from __future__ import annotations

FENCED = "FENCED"
"""What an error of a script begins with when another writer has the token."""

CHECK = """
local token = redis.call('HGET', KEYS[1], 'token')
if token ~= ARGV[1] then return redis.error_reply('FENCED ' .. (token or 'none')) end
"""

CLAIM = """
redis.call('HSET', KEYS[1], 'token', ARGV[2])
if redis.call('HGET', KEYS[1], 'form') ~= ARGV[1] then redis.call('HDEL', KEYS[1], 'position') end
redis.call('HSET', KEYS[1], 'form', ARGV[1])
return redis.call('HGET', KEYS[1], 'position')
"""
"""Sets the token; forgets a position whose rows have keys of another form."""

WRITE = (
    CHECK
    + """
local function texts(at)
  local data, ends = ARGV[at], ARGV[at + 1]
  return #ends / 4 - 1, function(i)
    local from, to = struct.unpack('<i4i4', ends, i * 4 + 1)
    return string.sub(data, from + 1, to)
  end
end
for at = 3, #ARGV, 9 do
  local rows, key = texts(at)
  local _, value = texts(at + 2)
  local expiries = ARGV[at + 4]
  for i = 0, rows - 1 do
    if expiries == '' then
      redis.call('SET', key(i), value(i))
    else
      local expiry = string.format('%.0f', (struct.unpack('<i8', expiries, i * 8 + 1)))
      redis.call('SET', key(i), value(i), 'PXAT', expiry)
    end
  end
  local gone, lost = texts(at + 5)
  local _, bounds = texts(at + 7)
  for i = 0, gone - 1 do
    local held = redis.pcall('GETRANGE', lost(i), 0, #bounds(i) - 1)
    if type(held) == 'table' or held == bounds(i) then redis.call('UNLINK', lost(i)) end
  end
end
redis.call('HSET', KEYS[1], 'position', ARGV[2], 'at', redis.call('TIME')[1])
return redis.status_reply('OK')
"""
)
"""Writes rows, deletes those whose window is still the one that is gone, and moves the position."""

FORGET = CHECK + "redis.call('HDEL', KEYS[1], 'position')\nreturn redis.status_reply('OK')\n"
"""Forgets the position."""

UNLINK = CHECK + "redis.call('UNLINK', unpack(ARGV, 2))\nreturn redis.status_reply('OK')\n"
"""Deletes keys."""
