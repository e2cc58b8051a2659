-- Generic UDP Encapsulation as balancers send it: what tshark lacks. Variant 0, no optional fields, no flags.
local gue = Proto("gue", "Generic UDP Encapsulation")
local wrong = ProtoExpert.new("gue.wrong", "not what a balancer sends", expert.group.MALFORMED, expert.severity.ERROR)
gue.experts = { wrong }

local inner = { [4] = Dissector.get("ip"), [41] = Dissector.get("ipv6") }

function gue.dissector(buffer, packet, tree)
  local header = tree:add(gue, buffer(0, 4))
  local dissector = inner[buffer(1, 1):uint()]
  if buffer(0, 1):uint() ~= 0 or buffer(2, 2):uint() ~= 0 or dissector == nil then
    header:add_proto_expert_info(wrong)
    return
  end
  dissector:call(buffer(4):tvb(), packet, tree)
end

-- The ports of the table's rows.
local ports = DissectorTable.get("udp.port")
for _, port in ipairs({ 6080, 4755, 61080 }) do
  ports:add(port, gue)
end
